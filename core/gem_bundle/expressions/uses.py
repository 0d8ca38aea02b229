"""Which columns an expression is made of, and its rule in a form that spaces and brackets don't change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.expressions.analysis import analyse, parsed
from gem_bundle.expressions.kinds import common_type
from gem_bundle.expressions.names import reference
from gem_bundle.expressions.scope import Scope
from gem_bundle.lineage import MAYBE_NULL, UNCERTAIN, Equality, Made, column_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.facts import Column, Facts

_WINDOWS = frozenset({"window", "session_window"})
_COUNTS = frozenset({"count", "count_if"})
_ITSELF = frozenset(
    {"any_value", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "every", "max", "min", "some"}
)
_FIRST = frozenset({"first", "first_value", "last", "last_value", "any_value"})
_SECOND_MOMENTS = ("stddev", "std", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop")
_MOMENTS = {**dict.fromkeys(_SECOND_MOMENTS, 3), "skewness": 4, "kurtosis": 5}
# Of rows that are there twice they make what they make of them once: what is first stays first.
_SAME_AGAIN = tuple(
    f"('{name}', "
    for name in sorted((_ITSELF - {"bit_xor"}) | {"approx_count_distinct", "first", "first_value"})
)
_TAKES_FIRST = tuple(f"('{name}', " for name in sorted(_FIRST))
_ONE_OF = " is one of "
_ONE_OF_THEM = _FIRST | {"max", "min"}
# Spark keeps these as bytes of its own.
_LISTS = frozenset({"array_agg", "collect_list", "collect_set"})
_OBJECTS = frozenset(
    [
        "approx_percentile",
        "array_agg",
        "bloom_filter_agg",
        "collect_list",
        "collect_set",
        "histogram_numeric",
        "hll_sketch_agg",
        "hll_union_agg",
        "listagg",
        "median",
        "mode",
        "percentile",
        "percentile_approx",
        "percentile_cont",
        "percentile_disc",
        "string_agg",
    ]
)
_SEVERAL_BUFFERS = frozenset(
    [
        "approx_count_distinct",
        "corr",
        "covar_pop",
        "covar_samp",
        "regr_avgx",
        "regr_avgy",
        "regr_count",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
    ]
)
_DEVIATION = "0.05"  # of `approx_count_distinct`, where none is given
_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})


def made_of(
    expression: str,
    columns: Sequence[Column] | None,
    *,
    position: int = 0,
    earlier: Mapping[str, Made] | None = None,
) -> Made:
    """How a column that an expression makes is made.

    Args:
        expression: An expression without an alias.
        columns: The columns it is over.
        position: The position of the input they belong to.
        earlier: What else it may name: columns of the same projection, by name in lower case.
    """
    return _made(expression, [(position, columns)], earlier or {})


def made_of_inputs(expression: str, inputs: Sequence[Sequence[Column] | None]) -> Made:
    """How something is made that an expression over several inputs decides."""
    return _made(expression, list(enumerate(inputs)), {})


def _made(
    expression: str, inputs: list[tuple[int, Sequence[Column] | None]], earlier: Mapping[str, Made]
) -> Made:
    def nulls_of_name(parts: Sequence[str]) -> frozenset[str]:
        """What makes a name null."""
        if _fields(parts, inputs):
            return frozenset({MAYBE_NULL})
        column = _resolved(parts, inputs)
        if column is not None:
            return frozenset({column})
        before = earlier.get(parts[0].lower())
        if before is None:
            return frozenset({UNCERTAIN})
        found = before.uses if before.rule == "=" else before.nulls
        return frozenset({UNCERTAIN}) if found is None else found

    parts = reference(expression)
    if parts is not None:
        names: list[list[str]] | None = [list(parts)]
        fields = _fields(parts, inputs)
        rule = f".{'.'.join(fields)}" if fields else "="
        nulls = nulls_of_name(parts)
    else:
        tree = parsed(expression)
        if tree is None:
            return Made(" ".join(expression.split()), None)
        from gem_bundle.expressions.nulls import nulls_in
        from gem_bundle.expressions.walk import shape

        names = _names_in(tree)
        rule = repr(shape(tree, _columns_of(names or (), inputs)))
        nulls = nulls_in(tree, nulls_of_name)
    if names is None:
        return Made(rule, None, nulls)
    order: list[str] = []
    for name in names:
        found = _resolved(name, inputs)
        before = earlier.get(name[0].lower()) if found is None else None
        if found is not None:
            order.append(found)
        elif before is not None and before.uses is not None:
            order += before.order or sorted(before.uses)
            rule += f" {before.rule}"
        elif before is None and _is_value(name, inputs):
            rule, nulls = (f"value {name[0].lower()}", frozenset()) if rule == "=" else (rule, nulls)
        else:
            # Two names of which nobody knows what they are aren't one and the same.
            return Made(f"= {expression.strip().lower()}" if rule == "=" else rule, None, nulls)
    return Made(rule, frozenset(order), nulls, tuple(order))


def _is_value(name: Sequence[str], inputs: Iterable[tuple[int, Sequence[Column] | None]]) -> bool:
    """Whether a name that no column has is a value to Spark, as `user` is."""
    return all(Scope(columns).resolve(list(name)).outcome == "value" for _, columns in inputs)


def _names_in(tree: exp.Expr) -> list[list[str]] | None:
    """The names of all columns in an expression, in order; None where some may be of something else."""
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import means_all_columns, parts_of
    from gem_bundle.expressions.walk import UNIT_FIRST, shape

    found: list[list[str]] = []
    waiting: list[exp.Expr] = [tree]
    while waiting:
        node = waiting.pop()  # the last one, so that what stands first is put there last
        parts = parts_of(node)
        if parts is not None:
            found.append(parts)
        elif isinstance(node, exp.Lambda | exp.Query | exp.Exists | exp.Window):
            return None
        elif isinstance(node, exp.Star):
            if means_all_columns(node):
                return None  # as in the JSON of a whole row
        elif isinstance(node, exp.NullSafeEQ) and shape(node.this) == shape(node.expression):
            continue  # which Spark knows to be true
        elif isinstance(node, exp.Cast | exp.Alias):
            waiting.append(node.this)
        elif isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            waiting.append(node.this)  # of what a field is, and not of a column of its name
        elif isinstance(node, exp.Interval):
            waiting += [] if isinstance(node.this, exp.Literal) else [node.this]
        elif isinstance(node, exp.Anonymous) and node.name.lower() in UNIT_FIRST:
            waiting.extend(reversed(node.expressions[1 if len(node.expressions) == 3 else 0 :]))
        else:
            waiting.extend(node.iter_expressions(reverse=True))
    return found


def _fields(parts: Sequence[str], inputs: Iterable[tuple[int, Sequence[Column] | None]]) -> tuple[str, ...]:
    """The fields of a column that a name with dots goes into."""
    for _, columns in inputs:
        fields = () if columns is None else Scope(columns).resolve(list(parts)).fields
        if fields:
            return tuple(field.lower() for field in fields)
    return ()


def _columns_of(
    names: Iterable[Sequence[str]], inputs: list[tuple[int, Sequence[Column] | None]]
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Which column each name is, with the fields that it goes into."""
    found = ((tuple(name), _resolved(name, inputs)) for name in names)
    return {name: (column, *_fields(name, inputs)) for name, column in found if column is not None}


def _resolved(parts: Sequence[str], inputs: list[tuple[int, Sequence[Column] | None]]) -> str | None:
    for position, columns in inputs:
        keys = column_keys(columns)
        if columns is None or keys is None:
            continue
        column = Scope(columns).resolve(list(parts)).column
        if column is None:
            continue
        for key, candidate in zip(keys, columns, strict=True):
            if candidate is column or candidate == column:
                return f"{position}:{key}"
    return None


def equal_keys(condition: str, inputs: Sequence[Sequence[Column] | None]) -> tuple[str | None, ...] | None:
    """The types of what a condition wants to be equal in two inputs, in order; None if it is unreadable."""
    found = _equal(condition, inputs)
    return None if found is None else tuple(kind for kind, _ in found)


def equal_parts(condition: str, inputs: Sequence[Sequence[Column] | None]) -> tuple[Made, ...]:
    """What that is made of, first in the one input and then in the other; empty if it is unreadable."""
    return tuple(part for _, parts in _equal(condition, inputs) or () for part in parts)


def kept_by(condition: str, left: Facts, right: Facts, names: tuple[str, str]) -> Made:
    """What decides which rows of two inputs are kept for a join, whichever pairs come out of them.

    What must be equal is what they are kept by, what is about one input is asked of it before, and by a range
    over a watermark rows are let go. Of a column that is compared Spark keeps no nulls, whatever it is
    compared by.

    Args:
        condition: The condition of an inner join.
        left: The facts of the left input.
        right: The facts of the right input.
        names: The names by which the condition calls the two.
    """
    inputs = [left.columns, right.columns]
    whole = _made(condition, list(enumerate(inputs)), {})
    tree = parsed(condition)
    if tree is None or whole.uses is None:
        return whole
    from gem_bundle.expressions.join_terms import conjuncts
    from gem_bundle.expressions.joins import join_condition

    rules = []
    for term in (part for whole_term in conjuncts(tree) for part in _bounds_of(whole_term)):
        text = term.sql(dialect="spark")
        if _is_of_pairs(term, inputs) and not join_condition(text, left, right, names).lets_go:
            rules.append(f"of pairs {sorted(asked_by(text, inputs) or ())}")
        else:
            rules.append(_made(text, list(enumerate(inputs)), {}).rule)
    return Made(" and ".join(rules), whole.uses)


def _bounds_of(term: exp.Expr) -> Iterator[exp.Expr]:
    """The two comparisons that `between` stands for; of another term the term."""
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import bare

    node = bare(term)
    if not isinstance(node, exp.Between):
        yield term
        return
    yield exp.GTE(this=node.this, expression=node.args["low"])
    yield exp.LTE(this=node.this, expression=node.args["high"])


def _is_of_pairs(term: exp.Expr, inputs: Sequence[Sequence[Column] | None]) -> bool:
    """Whether a term is asked of pairs, and nothing of it before of rows, but for nulls, or what is equal."""
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import bare

    node = bare(term)
    if isinstance(node, exp.Or | exp.And):
        return _is_of_pairs(node.left, inputs) and _is_of_pairs(node.right, inputs)
    uses = _made(node.sql(dialect="spark"), list(enumerate(inputs)), {}).uses or frozenset()
    if len({use.partition(":")[0] for use in uses}) < len(inputs):
        return False
    if node.find(exp.Or, exp.And, exp.Case, exp.In) is not None:
        return False  # of such Spark takes out what is about one side
    return isinstance(node, exp.NEQ) or node.find(exp.EQ, exp.NEQ, exp.NullSafeEQ) is None


def equalities(condition: str, columns: Sequence[Column] | None) -> tuple[Equality, ...]:
    """What a condition wants to be equal, as `gem_bundle.lineage.Lineage.equals` has it.

    Args:
        condition: A boolean expression.
        columns: The columns it is over.
    """
    tree = parsed(condition) if "=" in condition else None
    if tree is None:
        return ()
    found = []
    for texts, takes_nulls in _equal_terms(tree):
        one, other = (_made(text, [(0, columns)], {}).uses for text in texts)
        if one and other:
            found.append(Equality((one, other), takes_nulls))
    return tuple(found)


def _equal_terms(tree: exp.Expr) -> Iterator[tuple[list[str], bool]]:
    """What a condition wants to be equal, as texts, and whether nulls are."""
    from gem_bundle.expressions.join_terms import conjuncts
    from gem_bundle.expressions.spark_parser import exp

    for term in conjuncts(tree):
        if isinstance(term, exp.EQ | exp.NullSafeEQ):
            texts = [side.sql(dialect="spark") for side in (term.this, term.expression)]
            yield texts, isinstance(term, exp.NullSafeEQ)


def _equal(
    condition: str, inputs: Sequence[Sequence[Column] | None]
) -> list[tuple[str | None, list[Made]]] | None:
    """What a condition wants to be equal: the type that is compared, and what is."""
    tree = parsed(condition)
    if tree is None:
        return None
    known = list(enumerate(inputs))
    found: list[tuple[str | None, list[Made]]] = []
    for sides, takes_nulls in _equal_terms(tree):
        made = [_made(side, known, {}) for side in sides]
        if any(side.uses is None for side in made):
            return None
        of = [{use.partition(":")[0] for use in side.uses or ()} for side in made]
        if [len(places) for places in of] == [1, 1] and of[0] != of[1]:
            kinds = [
                analyse(text, inputs[int(next(iter(places)))]).column.type
                for text, places in zip(sides, of, strict=True)
            ]
            parts = sorted(made, key=lambda side: min(side.uses or ("",)))
            if not takes_nulls:
                found.append((common_type(kinds), parts))
                continue
            # Spark fills nulls, and whether it was one is a key of its own.
            filled = [replace(side, nulls=frozenset()) for side in parts]
            found += [(common_type(kinds), filled), ("boolean", filled)]
    return found


def tested_by(condition: str, bodies: Mapping[str, str]) -> frozenset[str] | None:
    """The columns that a condition needs; None where that isn't known.

    Spark asks of no column whether it is null where it never is.

    Args:
        condition: A boolean expression over columns.
        bodies: The expressions that columns are made by, by name in lower case, as far as they are known.
    """
    tree = parsed(condition)
    if tree is None:
        return None
    from gem_bundle.expressions.join_terms import conjuncts
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import bare, parts_of

    found: set[str] = set()
    for part in conjuncts(tree):
        asked = bare(part.this) if isinstance(part, exp.Not) else None
        if isinstance(asked, exp.Is) and isinstance(asked.expression, exp.Null):
            parts = parts_of(bare(asked.this))
            body = parsed(bodies.get(parts[-1].lower(), "")) if parts is not None else None
            if body is not None and _never_null(body):
                continue
        names = _names_in(part)
        if names is None:
            return None
        found |= {name[-1].lower() for name in names} | {name[0].lower() for name in names}
    return frozenset(found)


def _never_null(tree: exp.Expr) -> bool:
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import bare

    tree = bare(tree)
    if isinstance(tree, exp.Literal | exp.Boolean):
        return True
    if not isinstance(tree, exp.Anonymous):
        return False
    name = tree.name.lower()
    return name in _COUNTS | _LISTS or (name == "coalesce" and any(map(_never_null, tree.expressions)))


def asked_by(condition: str, inputs: Sequence[Sequence[Column] | None]) -> frozenset[str] | None:
    """The columns of which a condition leaves out nulls, as `gem_bundle.lineage.Lineage.asks` has them.

    Args:
        condition: A boolean expression.
        inputs: The columns of what it is over.
    """
    tree = parsed(condition)
    if tree is None:
        return None
    from gem_bundle.expressions.asked import asked_of

    known = list(enumerate(inputs))
    names = _names_in(tree) or ()
    # Of what isn't known it isn't known either that it is one column.
    columns = {tuple(name): ("?", *map(str.lower, name)) for name in names}
    columns |= _columns_of(names, known)
    return asked_of(tree, lambda parts: _resolved(parts, known), columns)


def nulls_left_out(condition: str, inputs: Sequence[Sequence[Column] | None]) -> frozenset[frozenset[str]]:
    """What `gem_bundle.lineage.Lineage.only_nulls` has of a condition that leaves out nothing but nulls.

    Args:
        condition: A boolean expression.
        inputs: The columns of what it is over.
    """
    tree = parsed(condition)
    if tree is None:
        return frozenset()
    from gem_bundle.expressions import asked

    known = list(enumerate(inputs))

    def resolved(parts: Sequence[str]) -> str | None:
        # What has a field that is null may be there.
        return None if _fields(parts, known) else _resolved(parts, known)

    return asked.nulls_left_out(tree, resolved)


def windows_over(expression: str) -> list[str]:
    """What the windows in an expression are over: Spark leaves out the rows for which that is null.

    Args:
        expression: An expression.
    """
    calls = _window_calls(expression) or ()
    return list(dict.fromkeys(call.expressions[0].sql(dialect="spark") for call in calls if call.expressions))


def has_overlapping_windows(expression: str) -> bool:
    """Whether a window in an expression overlaps with the next one, or may: Spark makes a row for each then.

    Args:
        expression: An expression.
    """
    calls = _window_calls(expression)
    if not calls:
        return calls is None
    from gem_bundle.expressions.nulls import nulls_in

    return any(nulls_in(call, lambda _: frozenset()) for call in calls if call.name.lower() == "window")


def _window_calls(expression: str) -> list[exp.Anonymous] | None:
    """The windows in an expression, those of sessions too; None where it can't be read."""
    if "window" not in expression.lower():
        return []
    tree = parsed(expression)
    if tree is None:
        return None
    from gem_bundle.expressions.spark_parser import exp

    return [call for call in tree.find_all(exp.Anonymous) if call.name.lower() in _WINDOWS]


def buffers_of(
    expression: str, columns: Sequence[Column] | None, groups: Sequence[str] = ()
) -> dict[str, tuple[str, ...]] | None:
    """What Spark keeps for each aggregate function of an expression, in order; None where that isn't known.

    It is told as types. One that ends in ``!`` is never null; one that isn't known is a question mark and the
    function's name.

    Args:
        expression: An expression with aggregate functions.
        columns: The columns it is over.
        groups: What is grouped by: the greatest of equal values is the least of them too.
    """
    tree = parsed(expression)
    if tree is None:
        return None
    keys = {made_of(group, columns) for group in groups}
    found: dict[str, tuple[str, ...]] = {}
    for name, arguments, text, only in _aggregates(tree, columns):
        if name in _ONE_OF_THEM and len(arguments) == 1 and made_of(arguments[0], columns) in keys:
            text += f"{_ONE_OF}{sorted(made_of(arguments[0], columns).uses or ())} {arguments[0].lower()}"  # noqa: PLW2901
        kept = _buffers(name, arguments, columns)
        if kept is None:
            return None
        found.setdefault(f"{text}{only}", kept)
    return found


def is_the_same_again(function: str) -> bool:
    """Whether an aggregate function comes to the same where rows that it has seen come once more.

    Args:
        function: The function, as `buffers_of` tells it.
    """
    return _ONE_OF in function or function.startswith(_SAME_AGAIN)


def takes_first(function: str) -> bool:
    """Whether an aggregate function gives the value of whichever row comes first, or last.

    Args:
        function: The function, as `buffers_of` tells it.
    """
    return function.startswith(_TAKES_FIRST)


def meaning_of(function: str) -> str:
    """What is kept for an aggregate function: the greatest of equal values is the least of them.

    Of a variance and of a deviation the same is kept, and what is made of it is another matter.

    Args:
        function: The function, as `buffers_of` tells it.
    """
    name, comma, rest = function.partition(",")
    if name[2:-1] in _SECOND_MOMENTS:
        return f"('{_SECOND_MOMENTS[0]}'{comma}{rest}"
    return function.partition(_ONE_OF)[2] or function


def _aggregates(
    tree: exp.Expr, columns: Sequence[Column] | None
) -> Iterator[tuple[str, list[str], str, str]]:
    """The aggregate functions in order: name, arguments, what tells them apart, of which rows they are."""
    from gem_bundle.expressions.functions import AGGREGATES
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.walk import shape

    for call in tree.find_all(exp.Anonymous, bfs=False):
        name = call.name.lower()
        if name in AGGREGATES:
            texts = [argument.sql(dialect="spark") for argument in call.expressions]
            if texts == ["*"] and name != "count" and columns is not None and len(columns) == 1:
                texts = [f"`{columns[0].name}`"]  # a star is all columns, of which there is one
            known = _columns_of(_names_in(call) or (), [(0, columns)])
            only = ""
            around = call.parent
            while isinstance(around, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
                only += f" {type(around).__name__}"
                if isinstance(around, exp.Filter | exp.WithinGroup):
                    where = around.expression
                    only += f" {shape(where, _columns_of(_names_in(where) or (), [(0, columns)]))}"
                around = around.parent
            yield name, texts, _counted(name, texts) or repr(shape(call, known)), only


def _counted(name: str, arguments: list[str]) -> str | None:
    """All ways to count rows are one to Spark."""
    plain = arguments == ["*"] or (len(arguments) == 1 and arguments[0].isdecimal())
    return "count(1)" if name == "count" and plain else None


def _buffers(name: str, arguments: list[str], columns: Sequence[Column] | None) -> tuple[str, ...] | None:
    if name in _COUNTS:
        return ("bigint!",)
    if name in _MOMENTS:
        return ("double!",) * _MOMENTS[name]
    if name == "count_min_sketch":
        # Sketches that were made otherwise can't be put together: Spark fails when rows come to them.
        return (f"{name} with {', '.join(arguments[1:])}",)
    if name in _OBJECTS:
        return ("binary",)
    kinds = [analyse(text, columns).column.type for text in arguments]
    if name in _SEVERAL_BUFFERS:
        told = kinds[:1] if name == "approx_count_distinct" and arguments[1:] in ([], [_DEVIATION]) else kinds
        return (f"{name}({', '.join(map(str, told))})",)
    if name in {"avg", "mean", "try_avg"} and kinds and kinds[0] is None:
        return ("double", "bigint")
    if not kinds or kinds[0] is None:
        return (f"?{name}",)
    kind = kinds[0]
    if name in _FIRST:
        return (kind, "boolean!")
    if name in _ITSELF:
        return (kind,)
    if name in {"max_by", "min_by"} and len(kinds) == 2 and kinds[1] is not None:
        return (kind, kinds[1])
    if name in {"sum", "try_sum"}:
        # Whether a sum that is tried has overflowed is kept beside it.
        return (*(_sum(kind) or ()), "boolean!") if name == "try_sum" and kind in _WHOLE else _sum(kind)
    if name in {"avg", "mean", "try_avg"}:
        # Unlike a count, and the moments, it is kept in what might be null.
        return (_widened(kind), "bigint") if kind.startswith("decimal(") else ("double", "bigint")
    return None


def _sum(kind: str) -> tuple[str, ...] | None:
    if kind.startswith("decimal("):
        return (_widened(kind), "boolean!")
    if kind in _WHOLE:
        return ("bigint",)
    return ("double",) if kind in {"float", "double", "string", "timestamp"} else None


def _widened(kind: str) -> str:
    """The decimal that sums of decimals are kept as."""
    precision, scale = kind[len("decimal(") : -1].split(",")
    return f"decimal({min(38, int(precision) + 10)},{scale.strip()})"
