"""What a node makes of what, without what Spark leaves out by what it knows of columns when it plans."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

from gem_bundle.changes.forms import form_made_by, form_of, is_column, kind_of, put_in, tree_of
from gem_bundle.lineage import Made

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

    from gem_bundle.changes.forms import Form
    from gem_bundle.changes.nulls import Nulls
    from gem_bundle.changes.sides import Side
    from gem_bundle.lineage import Lineage, Term

# What is another thing where a column is never null, or where one is a constant.
_GOES_BY_NULLS = re.compile(r"\.Null'>|'(isnull|isnotnull|coalesce|ifnull|nvl2?|nullif)'")
_GOES_BY_VALUES = re.compile(r"\.(And|Or|Case|EQ|NEQ|LTE?|GTE?)'>|'iff?'")
_VALUES = frozenset({"Boolean", "Literal"})


class _Known(NamedTuple):
    """What Spark knows of the columns that come to a node.

    Args:
        never: Those that are never null.
        constants: What those are that are a literal in all rows.
    """

    never: frozenset[str]
    constants: Mapping[str, Form]

    def decides(self, made: Made) -> bool:
        """Whether something may be another thing by it."""
        uses = made.uses or frozenset()
        if not uses.isdisjoint(self.constants) and _GOES_BY_VALUES.search(made.rule):
            return True
        return not uses.isdisjoint(self.never) and _goes_by_nulls(made)


class Standing:
    """What is left of what the nodes of one version make of what.

    Args:
        side: The version.
        lineage: What a node makes of what in one of its outputs, by its id, as its gem tells it; None where
            that isn't known.
        nulls: What is never null in it.
    """

    def __init__(self, side: Side, lineage: Callable[[str, str], Lineage | None], nulls: Nulls) -> None:
        self._side, self._lineage, self.nulls = side, lineage, nulls

    def of(self, name: str, lineage: Lineage) -> Lineage:
        """What a node makes of what, without what Spark leaves out by what it knows of columns.

        That is which are never null, by its rule `NullPropagation`, and which are constants in what it makes
        one with the node: `CollapseProject`. What is decided by that it folds.

        Args:
            name: The node.
            lineage: What it makes of what, as its gem tells it.
        """
        known = self._known_before(name, lineage)
        if known is None:
            return self._with_values_told(name, lineage)
        columns = {key: _column_left(made, known) for key, made in lineage.columns.items()}
        standing = self._with_values_told(name, replace(lineage, columns=columns))
        if lineage.kept is not None or not lineage.terms or standing.terms != lineage.terms:
            return standing
        terms = [(term, *_left(term.made, known)) for term in lineage.terms]
        left = tuple(term._replace(made=made) for term, made, holds in terms if holds is not True)
        rows, holds = _left(lineage.rows, known)
        if left == lineage.terms or holds is False:
            return standing
        if holds or not left:
            return replace(standing, rows=Made(), terms=(), asks=frozenset(), only_nulls=frozenset())
        return replace(
            standing, rows=rows, terms=left, only_nulls=lineage.nulls_left_out(self.nulls.before(name))
        )

    def _with_values_told(self, name: str, lineage: Lineage) -> Lineage:
        """A condition on results of groups without what its other parts decide: `n = 1 and (n > 0 or t > 1)`.

        Spark puts the value in the column's place, by its rule `ConstantPropagation`. What is about anything
        else is asked before, part by part.
        """
        terms = lineage.terms
        if lineage.kept is not None or len(terms) < 2 or not self._is_behind_groups(name):
            return lineage
        told, results = [_value_told(term.made) for term in terms], self._results_before(name)
        values: dict[str, Form] = {}
        for column, value in filter(None, told):
            if column in results:
                values.setdefault(column, value)
        if not values:
            return lineage
        never = self.nulls.never_before(name)
        left: list[Term] = []
        for term, own in zip(terms, told, strict=True):
            known = {key: value for key, value in values.items() if own is None or own[0] != key}
            made, holds = _left(term.made, _Known(never, known))
            more = (made.uses or frozenset()) | known.keys()
            if holds is not True:
                left.append(term._replace(made=made) if (term.made.uses or frozenset()) - more else term)
        uses = [term.made.uses for term in left]
        if tuple(left) == terms or None in uses:
            return lineage
        rows = replace(lineage.rows, uses=frozenset().union(*filter(None, uses)), order=())
        return replace(lineage, terms=tuple(left), rows=rows)

    def _results_before(self, name: str) -> frozenset[str]:
        """The columns that come to a node and are results of groups, or made of them."""
        (edge,) = self._side.nodes[name].inputs
        lineage = self._lineage(edge.node, edge.output)
        if lineage is None:
            return frozenset()
        if lineage.kept is not None:
            return frozenset(f"0:{key}" for key in lineage.kept.results)
        before = self._results_before(edge.node)
        made = lineage.columns.items()
        return frozenset(f"0:{key}" for key, one in made if not before.isdisjoint(one.uses or ()))

    def _known_before(self, name: str, lineage: Lineage) -> _Known | None:
        """What is known of the columns that come to a node; None where nothing goes by it."""
        made = [lineage.rows, *lineage.columns.values()]
        if not any(_goes_by_nulls(one) or _GOES_BY_VALUES.search(one.rule) for one in made):
            return None
        constants = self._constants_before(name)
        if constants and self._is_behind_groups(name) and _reads_twice(lineage, constants):
            constants = {}  # Spark leaves it apart from what makes them: its rule `CollapseProject`
        known = _Known(self.nulls.never_before(name), constants)
        return known if any(map(known.decides, made)) else None

    def _constants_before(self, name: str) -> Mapping[str, Form]:
        """The columns that come to the only input of a node and are literals, with those."""
        inputs = self._side.nodes[name].inputs
        if len(inputs) != 1:
            return {}
        before, output = inputs[0].node, inputs[0].output
        lineage = self._lineage(before, output) if self._side.nodes[before].kind == "transform" else None
        # Through what keeps rows or makes several of one Spark doesn't follow them.
        if lineage is None or lineage.kept is not None or lineage.expands or not self._passes(before):
            return {}
        known = self._constants_before(before)
        found: dict[str, Form] = {}
        for key, made in lineage.columns.items():
            form = known.get(next(iter(made.uses or ()), "")) if made.rule == "=" else None
            if form is None and made.uses == frozenset():
                form = form_of(made.rule)
            if form is not None and kind_of(form) in _VALUES:
                found[f"0:{key}"] = form
        return found

    def _is_behind_groups(self, name: str) -> bool:
        """Whether results of groups come to a node, with nothing between but what computes and asks."""
        inputs = self._side.nodes[name].inputs
        if len(inputs) != 1 or self._side.nodes[inputs[0].node].kind != "transform":
            return False
        before = inputs[0].node
        lineage = self._lineage(before, inputs[0].output)
        if lineage is not None and lineage.kept is not None:
            return not lineage.kept.rows
        return self._passes(before) and self._is_behind_groups(before)

    def _passes(self, name: str) -> bool:
        """Whether a node does nothing to rows but to leave some out."""
        return self._side.kinds_at(name) <= {"filter"}

    def lets_nothing_through(self, name: str, lineage: Lineage) -> bool:
        """Whether the condition of a node asks for a null where there is none: then it reads nothing.

        Args:
            name: The node.
            lineage: What it makes of what.
        """
        known = self._known_before(name, lineage) if lineage.kept is None else None
        return known is not None and _left(lineage.rows, known)[1] is False


def _value_told(made: Made) -> tuple[str, Form] | None:
    """The column that has one value where a condition holds, with that value; None where it tells none."""
    match form_made_by(made):
        case (
            ("EQ" | "NullSafeEQ", (("this", column), ("expression", value)))
            | ("EQ" | "NullSafeEQ", (("this", value), ("expression", column)))
            | ("Not", (("this", ("NEQ", (("this", column), ("expression", value)))),))
        ) if is_column(column) and kind_of(value) in _VALUES:
            found = cast("Form", column)
            return (str(found[0]), cast("Form", value)) if len(found) == 1 else None
    return None


def _goes_by_nulls(made: Made) -> bool:
    """Whether something may be another thing where a column is never null: it asks, or has it twice."""
    return _GOES_BY_NULLS.search(made.rule) is not None or len(made.order) > len(made.uses or ())


def _reads_twice(lineage: Lineage, but: Container[str]) -> bool:
    """Whether a node reads a column twice, of those that are none of some."""
    read = Counter(use for made in lineage.columns.values() for use in made.in_order if use not in but)
    return any(count > 1 for count in read.values())


def _left(made: Made, known: _Known) -> tuple[Made, bool | None]:
    """What something is but for what Spark leaves out of it.

    Args:
        made: How it is made.
        known: What is known of the columns that come.

    Returns:
        It, and whether it is true or false for all rows; None for anything else.
    """
    form = form_made_by(made) if known.decides(made) else None
    if form is None or any(len(column) > 2 for column in _columns_in(form)):
        return made, None
    from gem_bundle.expressions.folding import without_decided
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import bare, parts_of, shape
    from gem_bundle.expressions.uses import names_in

    tree = tree_of(put_in(form, known.constants))
    found = None
    if tree is not None:
        found = without_decided(tree, lambda name: name[0] in known.never and len(name) == 1)
    names = None if found is None or found is tree else names_in(found)
    if found is None or names is None:
        return made, None
    found = bare(found)
    called = {tuple(name): tuple(name) for name in names}
    column = parts_of(found)
    rule = repr(shape(found, called)) if column is None else f".{column[1]}" if column[1:] else "="
    order = tuple(name[0] for name in names)
    decided = bool(found.this) if isinstance(found, exp.Boolean) else None
    return replace(made, rule=rule, uses=frozenset(order), order=order), decided


def _column_left(made: Made, known: _Known) -> Made:
    """What a column is; where it is the same for all rows, none that is written down: Spark works that out.

    A condition on it may have been put elsewhere before that.
    """
    left, decided = _left(made, known)
    return left if decided is None else replace(left, rule=f"known {left.rule}")


def _columns_in(form: object) -> Iterator[Form]:
    if is_column(form):
        yield cast("Form", form)
    elif isinstance(form, tuple):
        for part in form:
            yield from _columns_in(part)
