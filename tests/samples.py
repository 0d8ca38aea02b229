"""What a daily run draws of the many instances of one rule: some of each, and others with each seed.

`scripts/test --long` runs all of them. Both print the seed, and `--seed` repeats a run. A sample is drawn of
instances of one rule only, so that no promise loses its test.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

T = TypeVar("T")

HYPOTHESIS_EXAMPLES: Final = 100

a_killed_program: Final = pytest.mark.sample(1, rule="a killed program")
"""What a program loses or doubles when it, its broker or its server is killed: a daily run kills one of them, and
always some gems of each kind."""

in_another_place: Final = pytest.mark.sample(1, rule="in another place")
"""Where Spark is somebody else's, or the data: a bundle on executors of a cluster of its own, a workspace of Databricks,
a run over Spark Connect, runs over an object store: killed, started again, refused, without rights, without its bucket,
with credentials that expire. A daily run has one of them."""

from_another_place: Final = pytest.mark.sample(1, rule="rejected rows from another place")
"""Rejected rows that come back from where they lie, files or a topic. A daily run always takes them from Delta."""

the_flights: Final = pytest.mark.sample(1, rule="the flights")
"""The example of the flights as a program: the whole year, from a topic, stopped."""

over_connect: Final = pytest.mark.sample(1, rule="over Spark Connect")
"""What is the same over Spark Connect. A daily run always has what a server lacks."""

a_session_of_its_own: Final = pytest.mark.sample(1, rule="a session of its own")
"""How Spark is started, and with what, in programs that do nothing else."""

a_started_bundle: Final = pytest.mark.sample(1, rule="a started bundle")
"""A bundle's command with a Spark of its own."""

a_proof_with_spark: Final = pytest.mark.sample(1, rule="a proof with Spark")
"""The proof of a bundle where it takes executors, or pip and Spark."""

in_an_environment_of_its_own: Final = pytest.mark.sample(1, rule="in an environment of its own")
"""What strangers do with nothing but gem-bundle's wheel: tutorials, and gems from elsewhere with their own tests."""


def some_of(promise: str, daily: int) -> pytest.MarkDecorator:
    """Tests that show one promise from several sides: a daily run takes some of them.

    A run of files that are named takes all of them: whoever works on a promise wants to see all its sides.

    Args:
        promise: What they show.
        daily: How many of them a daily run takes.
    """
    return pytest.mark.side(promise, daily)


what_merges_do: Final = some_of("what merges do", 4)
"""What becomes of a table's rows: each MERGE takes seconds on a busy machine."""

rejected_rows: Final = some_of("rejected rows", 4)
"""Each row is delivered or rejected, and which, over restarts and failures."""

rows_that_come_back: Final = some_of("rows that come back", 1)
"""Rejected rows that are read once more when what was wrong has been mended."""


class _Run:
    """What the command line says of this run. A process that a test starts is a daily one."""

    seed = 0
    long = False
    place = False
    names_files = False


def add_options(parser: pytest.Parser) -> None:
    """Take the options that decide on samples."""
    group = parser.getgroup("samples")
    group.addoption("--long", action="store_true", help="run what a daily run draws a sample of")
    group.addoption(
        "--place",
        action="store_true",
        help="run what a place of the matrix shows: all that a daily run draws a sample of, and each gem in a rule of its suite",
    )
    group.addoption("--seed", type=int, help="what samples are drawn by (default: another one each time)")


def decide(config: pytest.Config) -> None:
    """Decide on the seed, before Hypothesis asks for it."""
    if config.option.seed is None:
        told = getattr(config, "workerinput", {})
        config.option.seed = told.get("seed", secrets.randbelow(10**8))
    _Run.seed, _Run.long, _Run.place = config.option.seed, config.option.long, config.option.place
    _Run.names_files = all(arg.partition("::")[0].endswith(".py") for arg in config.args)
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(_Run.seed)
    settings.register_profile("gem-bundle", max_examples=examples(HYPOTHESIS_EXAMPLES // 5), deadline=None)
    settings.load_profile("gem-bundle")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell another process the seed."""
    node.workerinput["seed"] = _Run.seed


def pytest_report_header(config: pytest.Config) -> str:
    """Print the seed."""
    drawn_of = (
        "all of what a" if config.option.long else "each gem, and all else that a" if _Run.place else "a"
    )
    return f"seed: {config.option.seed} ({drawn_of} daily run draws)"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what isn't drawn: last, so that an instance that somebody asks for by name is there."""
    if _Run.long:
        return
    taken = _instances(_sides(items))
    if len(taken) < len(items):
        there = set(taken)
        config.hook.pytest_deselected(items=[item for item in items if item not in there])
        items[:] = taken


def _sides(items: list[pytest.Item]) -> list[pytest.Item]:
    """The items without the tests of a promise that aren't drawn."""
    if _Run.place or _Run.names_files:
        return items
    marks = {item: item.get_closest_marker("side") for item in items}
    promises: dict[tuple[str, int], dict[str, None]] = defaultdict(dict)
    for item, mark in marks.items():
        if mark is not None:
            promises[mark.args][_function(item)] = None
    kept = {
        function
        for (promise, daily), functions in promises.items()
        for function in drawn(functions, daily, about=promise)
    }
    return [item for item in items if marks[item] is None or _function(item) in kept]


def _instances(items: list[pytest.Item]) -> list[pytest.Item]:
    """The items without the instances of a rule that aren't drawn."""
    groups: dict[tuple[str, Any], list[pytest.Item]] = defaultdict(list)
    counts = {}
    for item in items:
        for key, count in _draws(item):
            groups[key].append(item)
            counts[key] = count
    sampled = {item for group in groups.values() for item in group}
    kept = {item for key, group in groups.items() for item in drawn(group, counts[key], about=str(key))}
    return [item for item in items if item in kept or item not in sampled]


def _draws(item: pytest.Item) -> Iterator[tuple[tuple[str, Any], int]]:
    """What an item is drawn of, and how many are: it is there if one of them draws it."""
    mark = item.get_closest_marker("sample")
    if mark is None:
        return
    if _Run.place and "each" not in mark.kwargs:
        return
    by: Callable[..., Any] | None = mark.kwargs.get("by")
    rule = mark.kwargs.get("rule") or _function(item)
    yield (rule, by(**item.callspec.params) if by else None), mark.args[0]  # type: ignore[attr-defined]
    if _Run.place and (each := mark.kwargs["each"]) is not None:
        yield ("each", each), 1


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Tell how to draw the same again, and how to draw nothing."""
    terminalreporter.write_line(
        f"Samples were drawn by --seed {config.option.seed}; with --long nothing is left out."
    )


def is_long() -> bool:
    """Whether this run is a long one."""
    return _Run.long


def seed() -> int:
    """What this run draws by."""
    return _Run.seed


def examples(daily: int, long: int | None = None) -> int:
    """How many examples a test is to draw.

    Args:
        daily: In a daily run.
        long: In a long one; by default twenty times as many.
    """
    return (20 * daily if long is None else long) if _Run.long else daily


def drawn(values: Iterable[T], daily: int, about: str = "") -> Sequence[T]:
    """All of the values in a long run, and in a daily one some of them, in their order.

    Args:
        values: The values.
        daily: How many are drawn.
        about: What keeps draws apart that are made of equal values.
    """
    found = list(values)
    if _Run.long or len(found) <= daily:
        return found
    places = Random(f"{_Run.seed} {about}").sample(range(len(found)), daily)
    return [found[place] for place in sorted(places)]
