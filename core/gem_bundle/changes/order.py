"""The order in which Spark keeps things, by which alone it tells those of one type apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.changes.conditions import ASKED_BEFORE
from gem_bundle.changes.needed import ALL, of_input
from gem_bundle.changes.taken import form_taken, put_over, taken_in
from gem_bundle.lineage import UNCHANGED, Result, collapsed, results_of
from gem_bundle.operators import JoinOperator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.forms import Form

# What a query's `with` is called among operators: it keeps nothing apart.
_NAMES = frozenset({"cte", "with"})
# What a projection goes before: Spark's rules `PushProjectionThroughUnion` and the one through limits.
_PASSED = frozenset({"limit", "union"})
# What a condition goes before; before groups where it is about what they are formed by.
_ASKED_THROUGH = frozenset({"aggregate", "filter", "union", "watermark"})


def results_in_order(flow: Flow, name: str) -> Iterator[list[str]]:
    """The results of an aggregation in the order in which Spark keeps what they are made of, for each path.

    That is the order of the columns that come out, and those are what the last projection behind it makes
    of them, where Spark makes one of both: its rule `CollapseProject`. A condition on results stands between
    them, also one that stands behind all of those projections: Spark puts it before them first, by its rule
    `PushDownPredicates`. On each path to the target it aggregates anew.

    Args:
        flow: The version.
        name: The node that aggregates.
    """
    lineage = flow.lineage(name)
    values = lineage.kept.values if lineage is not None and lineage.kept is not None else {}
    for path in flow.side.paths(name):
        own = results_of(lineage) if lineage is not None else None
        found = own
        first: dict[str, Form] = {k: (f"0:{k}",) if result.of else () for k, result in (own or {}).items()}
        made = first
        for reader, position in path:
            found = None if found is None else _behind(flow, reader, position, found)
            if found is None:
                break
            made = _made(flow, reader, position, made, found)
        if own is not None and _is_asked(flow, path, own):
            made = first
        order = dict.fromkeys(use.partition(":")[2] for form in made.values() for use, _ in taken_in(form))
        yield [*order, *(key for key in values if key not in order)]


def asks_for_results(flow: Flow, name: str) -> bool:
    """Whether a condition stands between an aggregation and what reads its results: none is made one with it.

    Args:
        flow: The version.
        name: The node that aggregates.
    """
    lineage = flow.lineage(name)
    own = results_of(lineage) if lineage is not None else None
    return own is None or any(_is_asked(flow, path, own) for path in flow.side.paths(name))


def _is_asked(flow: Flow, path: Sequence[tuple[str, int]], results: dict[str, Result]) -> bool:
    """Whether a condition on results, behind projections of them, gets to where they come from."""
    of_results = {key for key, result in results.items() if result.of}
    # The columns of what was joined to them, with which a condition is one of pairs, and those of watermarks,
    # behind which it stays.
    beside: set[str] = set()
    for name, position in path:
        node, lineage = flow.side.nodes[name], flow.lineage(name)
        operators = flow.side.operators_at(name)
        joins = [operator for operator in operators if isinstance(operator, JoinOperator)]
        kinds = {operator.kind for operator in operators if operator not in joins} - _NAMES
        is_followed = node.kind == "transform" and not node.functions and not node.inputs[position].output
        if lineage is None or not is_followed or not kinds <= _ASKED_THROUGH:
            return False
        groups = lineage.kept if "aggregate" in kinds else None
        if groups is not None and groups.rows:
            return False
        terms, rows = (lineage.terms, lineage.rows) if groups is None else (groups.taken_by, groups.taken)
        side = position if lineage.kept is None else lineage.kept.side_at(position)
        if any(side not in ASKED_BEFORE.get(join.how, ()) for join in joins):
            return False
        parts = [term.made for term in terms] or [rows]
        uses = [set(of_input(part.uses or (), position)) for part in parts if not joins]
        if any(read & of_results and not read & beside for read in uses):
            return True
        columns = lineage.columns.items()
        of_results = {
            key
            for key, made in columns
            if made.uses is None or of_results.intersection(of_input(made.uses, position))
            # What several rows are made by isn't there before.
            if not lineage.expands or made.rule in UNCHANGED
        }
        beside = {key for key, made in columns if beside.intersection(of_input(made.uses or (), position))}
        if groups is not None:
            beside |= groups.results  # what is asked of them stays behind
        if "watermark" in kinds:
            beside |= flow.marked(name)
        if joins:
            others = range(len(node.inputs))
            beside |= {k for k, m in columns for o in others if o != position and of_input(m.uses or (), o)}
    return False


def _behind(flow: Flow, name: str, position: int, results: dict[str, Result]) -> dict[str, Result] | None:
    """The columns of a node, where it makes no more than columns of some that come to it."""
    node = flow.side.nodes[name]
    lineage = flow.lineage(name) if node.kind == "transform" else None
    if lineage is None or node.functions or node.inputs[position].output:
        return None
    kinds = flow.side.kinds_at(name) - _NAMES
    if kinds and kinds <= _PASSED:
        passed = {key: of_input(made.uses or (), position) for key, made in lineage.columns.items()}
        return {key: results.get("".join(uses), Result()) for key, uses in passed.items()}
    if not kinds <= {"filter"}:
        return None
    needed = flow.needed.behind(name)
    return collapsed(
        results, flow.parts.narrowed(name, lineage), lineage.columns if ALL in needed else needed
    )


def _made(
    flow: Flow, name: str, position: int, before: Mapping[str, Form], results: Iterable[str]
) -> dict[str, Form]:
    """What the columns of a node are made of over an aggregation's own, of which what it reads is made."""
    lineage = flow.lineage(name)

    def of(use: str) -> Form:
        at, _, key = use.partition(":")
        return before.get(key, ()) if at == str(position) else ()

    return {key: put_over(form_taken(lineage.columns[key]), of) for key in results} if lineage else {}
