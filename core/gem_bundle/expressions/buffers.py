"""What Spark keeps for aggregate functions: its own buffers, and which functions are kept alike."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gem_bundle.expressions.analysis import analyse, folded, parsed
from gem_bundle.expressions.made import made_of
from gem_bundle.expressions.uses import columns_of, names_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.facts import Column

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
# `EliminateDistinct.isDuplicateAgnostic`, with what Spark makes such functions of.
_BLIND_TO_DUPLICATES = tuple(
    f"('{name}', " for name in sorted((_ITSELF - {"bit_xor"}) | _FIRST | {"collect_set"})
)
_TAKES_FIRST = tuple(f"('{name}', " for name in sorted(_FIRST))
_ONE_OF = " is one of "
_ONE_OF_THEM = _FIRST | {"max", "min"}
# Spark keeps these as bytes of its own.
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
_COVARIANCES = ("covar_samp", "covar_pop")
_SUMS_OF_PAIRS = {**dict.fromkeys(_COVARIANCES, 4), "corr": 6}
_MOST_BITS = 16
_DEVIATION = 0.05  # of `approx_count_distinct`, where none is given
_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
# `DecimalAggregates`: of decimals of so few digits Spark adds up whole numbers, and their means are doubles.
_LONGEST_WHOLE, _LONGEST_DOUBLE = 8, 11


def buffers_of(
    expression: str, columns: Sequence[Column] | None, groups: Sequence[str] = ()
) -> dict[str, tuple[str, ...]] | None:
    """What Spark keeps for each aggregate function of an expression, in order; None where that isn't known.

    It is told as types. One that ends in ``!`` is never null; one that isn't known is a question mark and the
    function's name. Of a function that Spark hasn't by itself nobody knows whether it is an aggregate one.

    Args:
        expression: An expression with aggregate functions.
        columns: The columns it is over.
        groups: What is grouped by: the greatest of equal values is the least of them too.
    """
    tree = parsed(expression)
    if tree is None or may_aggregate(expression):
        return None
    from gem_bundle.expressions.folding import without_decided
    from gem_bundle.expressions.functions import AGGREGATES

    tree = without_decided(tree, whole=AGGREGATES)  # any column may be null, but counts never are
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


def may_aggregate(expression: str) -> bool:
    """Whether a function in an expression may be an aggregate one that was registered in the session.

    Args:
        expression: An expression over rows of groups.
    """
    from gem_bundle.expressions.functions import AGGREGATES, FUNCTIONS
    from gem_bundle.expressions.spark_parser import exp

    def is_aggregate(call: exp.Expr) -> bool:
        return isinstance(call, exp.Anonymous) and call.name.lower() in AGGREGATES

    tree = parsed(expression)
    return tree is not None and any(
        call.name.lower() not in FUNCTIONS
        and not any(map(is_aggregate, call.find_all(exp.Anonymous)))
        and not any(map(is_aggregate, _around(call)))
        for call in tree.find_all(exp.Anonymous)
    )


def _around(node: exp.Expr) -> Iterator[exp.Expr]:
    """What an expression stands in, from the inside out."""
    while node.parent is not None:
        node = node.parent
        yield node


def is_the_same_again(function: str) -> bool:
    """Whether an aggregate function comes to the same where rows that it has seen come once more.

    Args:
        function: The function, as `buffers_of` tells it.
    """
    return _ONE_OF in function or function.startswith(_SAME_AGAIN)


def is_blind_to_duplicates(function: str) -> bool:
    """Whether Spark knows that an aggregate function comes to the same where each row is there once only.

    Args:
        function: The function, as `buffers_of` tells it.
    """
    return function.startswith(_BLIND_TO_DUPLICATES)


def takes_first(function: str) -> bool:
    """Whether an aggregate function gives the value of whichever row comes first, or last.

    Args:
        function: The function, as `buffers_of` tells it.
    """
    return function.startswith(_TAKES_FIRST)


def meaning_of(function: str) -> str:
    """What is kept for an aggregate function: the greatest of equal values is the least of them.

    Of a variance and of a deviation the same is kept, of both covariances too, and what is made of it is
    another matter.

    Args:
        function: The function, as `buffers_of` tells it.
    """
    name, comma, rest = function.partition(",")
    for alike in (_SECOND_MOMENTS, _COVARIANCES):
        if name[2:-1] in alike:
            return f"('{alike[0]}'{comma}{rest}"
    return function.partition(_ONE_OF)[2] or function


def bare_function(function: str) -> str:
    """An aggregate function as it is written, without what it comes to.

    Args:
        function: The function, as `buffers_of` tells it.
    """
    return function.partition(_ONE_OF)[0]


def _aggregates(
    tree: exp.Expr, columns: Sequence[Column] | None
) -> Iterator[tuple[str, list[str], str, str]]:
    """The aggregate functions in order: name, arguments, what tells them apart, of which rows they are."""
    from gem_bundle.expressions.folding import without_decided
    from gem_bundle.expressions.functions import AGGREGATES
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import shape

    for call in tree.find_all(exp.Anonymous, bfs=False):
        name = call.name.lower()
        if name in AGGREGATES:
            # The type of what branches give is that of all of them, also of those that are left out.
            texts = [argument.sql(dialect="spark") for argument in call.expressions]
            if texts == ["*"] and name != "count" and columns is not None and len(columns) == 1:
                texts = [f"`{columns[0].name}`"]  # a star is all columns, of which there is one
            known = columns_of(names_in(call) or (), [(0, columns)])
            only = _of_which(call, columns)
            if only is None:
                continue  # `EliminateAggregateFilter`: what no row counts for is known, and nothing is kept
            yield name, texts, _counted(name, texts) or repr(shape(without_decided(call), known)), only


def _of_which(call: exp.Expr, columns: Sequence[Column] | None) -> str | None:
    """What tells the rows that a call is about from others, and their order; None where it is about none."""
    from gem_bundle.expressions.constants import constant_of
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import shape

    found = ""
    around = call.parent
    while isinstance(around, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        constant = constant_of(around.expression.this) if isinstance(around, exp.Filter) else None
        if constant is False:
            return None
        if constant is None:
            found += f" {type(around).__name__}"
            if isinstance(around, exp.Filter | exp.WithinGroup):
                where = around.expression
                found += f" {shape(where, columns_of(names_in(where) or (), [(0, columns)]))}"
        around = around.parent
    return found


def _counted(name: str, arguments: list[str]) -> str | None:
    """All ways to count rows are one to Spark."""
    if name not in {"count", "count_if"} or not arguments:
        return None
    if arguments == ["*"] or (len(arguments) == 1 and arguments[0].isdecimal()):
        return "count(1)" if name == "count" else None
    known = _known_of(name, arguments)
    return "count(1)" if known and all(one is True for one in known) else None


def _buffers(name: str, arguments: list[str], columns: Sequence[Column] | None) -> tuple[str, ...] | None:
    if name in _COUNTS:
        return _counts(name, arguments)
    if name in _MOMENTS:
        return ("double!",) * _MOMENTS[name]
    if name == "count_min_sketch":
        # Sketches that were made otherwise can't be put together: Spark fails when rows come to them.
        return (f"{name} with {', '.join(arguments[1:])}",)
    if name in _OBJECTS:
        return ("binary",)
    kinds = [analyse(text, columns).column.type for text in arguments]
    if name in _SUMS_OF_PAIRS:
        return ("double!",) * _SUMS_OF_PAIRS[name]
    if name == "approx_count_distinct":
        return ("bigint",) * words if (words := _words(arguments[1:])) else (f"{name}({arguments[1:]})",)
    if name in _SEVERAL_BUFFERS:
        return (f"{name}({', '.join(map(str, kinds))})",)
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
        long = kind.startswith("decimal(") and _digits(kind) > _LONGEST_DOUBLE
        return (_widened(kind), "bigint") if long else ("double", "bigint")
    return None


def _counts(name: str, arguments: list[str]) -> tuple[str, ...]:
    """What is kept for a count: nothing where it counts nulls alone, for then it is 0, which Spark knows.

    A constant that only Spark works out is told by its text: for another one it may keep something else.
    """
    known = _known_of(name, arguments)
    if not known or True in known:
        return ("bigint!",)
    return (f"count of {', '.join(arguments)}",) if None in known else ()


def _known_of(name: str, arguments: list[str]) -> list[bool | None]:
    """Of what is counted by constants alone, whether each counts; None where Spark works that out.

    Returns:
        Nothing where something else is counted.
    """
    from gem_bundle.expressions.constants import constant_of, value_of

    # What `count_if` counts is computed before, so that of columns Spark works nothing out.
    read = parsed if name == "count_if" else folded
    trees = [tree for text in arguments if text != "*" and (tree := read(text)) is not None]
    if len(trees) < len(arguments) or any(_is_of_names(tree) for tree in trees):
        return []
    if name == "count_if":
        return [False if value_of(tree) is None else constant_of(tree) for tree in trees]
    return [_is_there(tree) for tree in trees]


def _is_of_names(tree: exp.Expr) -> bool:
    from gem_bundle.expressions.spark_parser import exp

    return names_in(tree) != [] or tree.find(exp.Column) is not None


def _is_there(tree: exp.Expr) -> bool | None:
    """Whether a constant isn't null, where that is plain."""
    from gem_bundle.expressions.constants import UNKNOWN, value_of

    value = value_of(tree)
    return None if value is UNKNOWN else value is not None


def _words(deviation: Sequence[str]) -> int:
    """How many words Spark's `HyperLogLogPlusPlusHelper` keeps for a deviation; 0 where it can't be told."""
    try:
        allowed = float(deviation[0]) if deviation else _DEVIATION
        bits = math.ceil(2 * math.log2(1.106 / allowed))
    except (ValueError, ZeroDivisionError):
        return 0
    return (1 << bits) // 10 + 1 if 4 <= bits <= _MOST_BITS else 0


def _sum(kind: str) -> tuple[str, ...] | None:
    if kind.startswith("decimal("):
        return ("bigint",) if _digits(kind) <= _LONGEST_WHOLE else (_widened(kind), "boolean!")
    if kind in _WHOLE:
        return ("bigint",)
    return ("double",) if kind in {"float", "double", "string", "timestamp"} else None


def _widened(kind: str) -> str:
    """The decimal that sums of decimals are kept as."""
    scale = kind[:-1].partition(",")[2]
    return f"decimal({min(38, _digits(kind) + 10)},{scale.strip()})"


def _digits(kind: str) -> int:
    """How many digits a decimal has."""
    return int(kind.removeprefix("decimal(").partition(",")[0])
