"""Some workers share what is dear: who takes which tests, and what one of them makes for all.

Tests of the warm Spark session want a processor; tests that start programs wait for them most of the time. So one
worker takes the ones from the front of the queue, the others the others from its end, and they meet among those that
start nothing: one session is enough for nearly the whole run.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.guard import is_marked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from xdist.scheduler import LoadScopeScheduling

# The order of the queue: what needs a service may need the session too.
SERVICES: Final = "services"
SESSION: Final = "session"
PLAIN: Final = ""
PROGRAMS: Final = "programs"
ORDER: Final = (SERVICES, SESSION, PLAIN, PROGRAMS)
# The fixtures that one worker has for itself: tests stop and start the broker, and one cluster or server is enough.
ONCE: Final = {"kafka", "kafka_sasl", "cluster", "connect_server"}


def kind_of(item: pytest.Item) -> str:
    """What a test shares with others: a service, the session, nothing, or nothing but the machine."""
    fixtures = getattr(item, "fixturenames", ())
    if ONCE.intersection(fixtures):
        return SERVICES
    if "spark" in fixtures:
        return SESSION
    return PROGRAMS if is_marked(item) else PLAIN


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests into the order of the queue, where there are workers to share it."""
    if not hasattr(config, "workerinput"):
        return
    kinds = {item: kind_of(item) for item in items}
    items.sort(key=lambda item: ORDER.index(kinds[item]))
    for item, kind in kinds.items():
        if kind:
            item.add_marker(pytest.mark.xdist_group(kind))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Take the queue from both ends, a file at a time, and the tests of services as one."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class FromBothEnds(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file, _, rest = nodeid.partition("::")
            group = rest.rpartition("@")[2] if rest.rfind("@") > rest.rfind("]") else ""
            return SERVICES if group == SERVICES else f"{file}@{group}"

        def _assign_work_unit(self, node: Any) -> None:
            if self.nodes.index(node):
                self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
            super()._assign_work_unit(node)

    config.option.loadscopereorder = False
    return FromBothEnds(config, log)


def shared_folder(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that one of a run's workers fills, and that all of them read.

    Args:
        factory: Knows the run's folder for temporary files.
        name: The folder's name.
        make: Fills it. When it fails, the next one who asks tries again.
    """
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    folder, done = root / f"shared-{name}", root / f"shared-{name}.done"
    with _locked(root / f"shared-{name}.lock"):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
