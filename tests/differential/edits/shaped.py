"""Whether Spark keeps what `gem-bundle plan` thinks that it keeps, of each drawn pipeline by itself.

Every verdict on state goes by its shape. An edit shows that one is wrong only where the other version's is right;
a pipeline that is planned shows it at once, some four a second.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.flow import Flow
from gem_bundle.changes.shapes import shapes
from gem_bundle.changes.sides import new_side
from gem_bundle.changes.state_files import read_stores
from gem_bundle.plugins import load_registry
from tests.differential.edits.drawn import drawn_edits
from tests.differential.edits.planned import Planning
from tests.differential.engine import started
from tests.differential.processes import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gem_bundle.changes.shapes import Shape
    from gem_bundle.changes.state_files import StateStore
    from gem_bundle.pipeline.plan import Plan

EACH = 8
"""How many edits of one pipeline are planned too."""

_PROGRESS = 100
# What the aggregation calls what its pivot goes by.
_PIVOT = "__gem_bundle_pivot"
_NULLS = re.compile(r"[!~]")
_NAME = re.compile(r"(?<=[<,])[^<>,:()]+:")
_SIDE = re.compile(r"(left|right)-keyWithIndexToValue")


def stores_in(checkpoint: Path) -> list[tuple[StateStore, ...]]:
    """What Spark has written of the state of each operator when it planned a query.

    Args:
        checkpoint: The folder of its checkpoint.
    """
    return [stores for _, stores in read_stores(str(checkpoint))]


def difference(here: Sequence[Shape], there: Sequence[Sequence[StateStore]]) -> str:
    """How the shapes of a query's state differ from what Spark keeps; empty where they don't.

    Args:
        here: The shapes, in the order of the query.
        there: What Spark keeps; it counts its operators from the target.
    """
    if len(here) != len(there):
        told = [f"{shape.kind} of {shape.node}" for shape in here]
        return f"{told} here, and {len(there)} operators there"
    there = _without_pivots(there)
    found = [_all_of(order, there) for order in (here, here[::-1])]
    return "" if "" in found else found[1]


def _without_pivots(there: Sequence[Sequence[StateStore]]) -> list[Sequence[StateStore]]:
    """The same without what Spark keeps to make columns of a pivot's values, of which no shape is told."""
    pivoted = [any(name == _PIVOT for name, _ in stores[0].keys or ()) for stores in there]
    return [() if after else stores for stores, after in zip(there, [*pivoted, False][1:], strict=True)]


def _all_of(here: Sequence[Shape], there: Sequence[Sequence[StateStore]]) -> str:
    return next(filter(None, (_of_one(*both) for both in zip(here, there, strict=True))), "")


def _of_one(shape: Shape, stores: Sequence[StateStore]) -> str:
    """The same of one operator."""
    if shape.empty or not stores:
        return ""
    if shape.kind.startswith("join"):
        return _of_join(shape, stores)
    keys, values = _types(stores[0].keys), _types(stores[0].values)
    if shape.kind != "sessions" and not _fit(shape.keys, keys):
        return f"the keys of {shape.node} are {shape.keys} here, and {keys} there"
    if shape.kind == "aggregate" and not _fit(shape.values, values):
        return f"the values of {shape.node} are {shape.values} here, and {values} there"
    return ""


def _of_join(shape: Shape, stores: Sequence[StateStore]) -> str:
    if shape.values is None or not any(name.startswith("|") for name in shape.holds):
        return ""
    sides: list[list[str | None]] = [[]]
    for kind, name in zip(shape.values, shape.holds, strict=True):
        if name.startswith("|"):
            sides.append([])
        else:
            sides[-1].append(kind)
    for store in stores:
        if (side := _SIDE.match(store.name)) is None:
            continue
        here, there = sides[side[1] == "right"], _types(store.values)
        if not _fit(here, there):
            return f"of {shape.node} the {side[1]} rows are {here} here, and {there} there"
        # Where keys from behind a join stand isn't known here; the last one there numbers the rows of a key.
        keys = _types(store.keys)[:-1]
        known = Counter(map(_plain, filter(None, shape.keys or ()))) - Counter(map(_plain, keys))
        if shape.keys is not None and (known or len(shape.keys) != len(keys)):
            return f"the keys of {shape.node} are {shape.keys} here, and {keys} there"
    return ""


def _types(columns: Sequence[tuple[str, str]] | None) -> list[str]:
    """The types of columns: not that of whether a joined row has had a partner, nor the key of what has none."""
    return [kind for name, kind in columns or () if name != "matched" and kind != "void"]


def _fit(here: Sequence[str | None] | None, there: Sequence[str]) -> bool:
    """Whether types are those that Spark has, as far as they are known; rows that a gem tells are no types."""
    if here is None or any(one is not None and one.startswith(("left ", "right ")) for one in here):
        return True
    if len(here) != len(there):
        return False
    pairs = zip(here, there, strict=True)
    return all(one is None or one.startswith("?") or _plain(one) == _plain(other) for one, other in pairs)


def _plain(kind: str) -> str:
    """A type without the names of fields, and without what is known of nulls."""
    return _NAME.sub("", _NULLS.sub("", kind).replace(" ", ""))


def shapes_of(plan: Plan, target: str) -> list[Shape]:
    """What is thought to be kept for a target.

    Args:
        plan: The pipeline.
        target: The id of the target.
    """
    return shapes(Flow(new_side(version_of(plan, target), plan, target)))


def versions(seed: str, registry: Any, states: int) -> Iterator[tuple[str, Plan, str]]:
    """A drawn pipeline and its edits, each with what it is called and its target.

    Args:
        seed: What it comes from.
        registry: The gems.
        states: At how many nodes it keeps state at least.
    """
    seen: set[int] = set()
    for drawn in drawn_edits(seed, registry, EACH, asked=True, states=states):
        if id(drawn.old) not in seen:
            seen.add(id(drawn.old))
            yield "as it was", drawn.old, drawn.target
        yield f"{drawn.edit.kind} ({drawn.edit.node})", drawn.new, drawn.target


def work(seed: str, job: int, jobs: int, count: int, states: int = 1) -> Counter[str]:
    """Look at pipelines in a session of one's own: every so many of a seed.

    Args:
        seed: What the pipelines come from.
        job: Which of the processes this is.
        jobs: How many there are.
        count: How many versions.
        states: At how many nodes a pipeline keeps state at least.
    """
    tally: Counter[str] = Counter()
    registry = load_registry()
    number = job
    with tempfile.TemporaryDirectory(prefix="gem-bundle-shapes-") as name, started(Path(name)) as spark:
        planning, checkpoint = Planning(spark, Path(name) / "planned"), Path(name) / "checkpoint"
        while tally.total() < count:
            for what, plan, target in versions(f"{seed}:{number}", registry, states):
                try:
                    planning.plan_alone(plan, target, checkpoint)
                except Exception:  # noqa: BLE001 (it tells nothing of state)
                    tally["useless"] += 1
                    continue
                found = difference(shapes_of(plan, target), stores_in(checkpoint))
                shutil.rmtree(checkpoint)
                tally["otherwise" if found else "right"] += 1
                if found:
                    print(f"{seed}:{number} {what}: {found}", flush=True)
                if tally.total() % _PROGRESS == 0:
                    print(f"{tally.total()} versions: {dict(tally)}", flush=True)
            number += jobs
    return tally


def run(seed: str, count: int, jobs: int, states: int = 1) -> int:
    """Look at what pipelines keep, in several processes if that is asked for.

    Args:
        seed: What the pipelines come from.
        count: How many versions of pipelines.
        jobs: How many processes.
        states: At how many nodes a pipeline keeps state at least.

    Returns:
        The exit status: 1 when Spark keeps something else.
    """
    print(f"seed {seed}, what {count} versions of pipelines keep", flush=True)
    share = -(-count // jobs)
    tally = counted("versions", work, [(seed, job, jobs, share, max(states, 1)) for job in range(jobs)])
    return 1 if tally["otherwise"] else 0
