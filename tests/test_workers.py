"""What one worker makes is there for the other one, and each knows which tests it takes."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest

from tests.workers import (
    ORDER,
    PLAIN,
    PROGRAMS,
    SERVICES,
    SESSION,
    kind_of,
    pytest_xdist_make_scheduler,
    shared_folder,
)

if TYPE_CHECKING:
    from pathlib import Path


class Factory:
    """The temporary files of a worker."""

    def __init__(self, base: Path) -> None:
        self._base = base
        base.mkdir()

    def getbasetemp(self) -> Path:
        return self._base


def test_a_folder_is_made_once_for_all_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    made: list[Path] = []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "wheel").write_text("whole")

    found: deque[Path] = deque()
    factories: list[Any] = [Factory(tmp_path / f"gw{n}") for n in range(4)]
    threads = [
        threading.Thread(target=lambda f=f: found.append(shared_folder(f, "wheel", make))) for f in factories
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(made) == 1
    assert set(found) == set(made)
    assert (made[0] / "wheel").read_text() == "whole"
    assert made[0].parent == tmp_path


def test_what_could_not_be_made_is_tried_again(tmp_path: Path) -> None:
    factory: Any = Factory(tmp_path / "base")

    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        shared_folder(factory, "wheel", fail)
    folder = shared_folder(factory, "wheel", lambda folder: (folder / "whole").touch())
    assert [path.name for path in folder.iterdir()] == ["whole"]


class Item:
    def __init__(self, *fixtures: str, mark: str = "") -> None:
        self.fixturenames = fixtures
        self._mark = mark

    def get_closest_marker(self, name: str) -> bool:
        return name == self._mark


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        (Item("tmp_path"), PLAIN),
        (Item(mark="programs"), PROGRAMS),
        (Item(mark="spark"), PROGRAMS),
        (Item("spark", mark="spark"), SESSION),
        (Item("spark", "kafka", mark="kafka"), SERVICES),
        (Item("cluster", mark="spark"), SERVICES),
    ],
)
def test_which_kind_a_test_is(item: Any, kind: str) -> None:
    assert kind_of(item) == kind


def test_the_queue_is_taken_from_both_ends(pytestconfig: pytest.Config) -> None:
    from xdist.workermanage import parse_tx_spec_config  # noqa: F401 (it is installed)

    class Config:
        option: Any = type("Option", (), {"loadscopereorder": True})()

        def getvalue(self, name: str) -> Any:
            return {"dist": "loadgroup", "tx": ["2*popen"]}[name]

    class Node:
        shutting_down = False

        def __init__(self, name: str) -> None:
            self.gateway = type("Gateway", (), {"id": name})()
            self.sent: list[str] = []

        def send_runtest_some(self, indices: list[int]) -> None:
            self.sent += [names[index] for index in indices]

        def shutdown(self) -> None:
            self.shutting_down = True

    names = [
        *("a.py::test[x@y]@services", "b.py::test@services"),
        *("a.py::test_1@session", "a.py::test_2@session", "a.py::test_3@session", "c.py::test_[a@b]"),
        *(f"d.py::test_{n}@programs" for n in range(3)),
    ]
    assert [ORDER.index(kind) for kind in (SERVICES, SESSION, PLAIN, PROGRAMS)] == [0, 1, 2, 3]
    config: Any = Config()
    scheduler: Any = pytest_xdist_make_scheduler(config, None)
    nodes: list[Any] = [Node("gw0"), Node("gw1")]
    for node in nodes:
        scheduler.add_node(node)
    for node in nodes:
        scheduler.add_node_collection(node, names)
    scheduler.schedule()

    assert nodes[0].sent == names[:5]
    assert nodes[1].sent == names[6:]
    scheduler.mark_test_complete(nodes[1], 6)
    assert nodes[1].sent == [*names[6:], names[5]]
