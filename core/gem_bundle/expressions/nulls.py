"""Whether Spark takes an expression for one that may be null: by its form alone, whatever filters leave out.

Imports sqlglot, whose trees it works on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.expressions.functions import AGGREGATES
from gem_bundle.expressions.spark_parser import exp
from gem_bundle.expressions.trees import bare, parts_of
from gem_bundle.lineage import MAYBE_NULL, UNCERTAIN
from gem_bundle.types import interval_length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Resolve = Callable[[Sequence[str]], frozenset[str]]

NEVER: frozenset[str] = frozenset()
_MAYBE, _UNCERTAIN = frozenset({MAYBE_NULL}), frozenset({UNCERTAIN})
_BY_ITSELF = _MAYBE | _UNCERTAIN
_TOTAL = frozenset(
    [
        *("approx_count_distinct", "array", "array_agg", "collect_list", "collect_set", "concat_ws", "count"),
        *("count_if", "current_date", "current_timestamp", "current_user", "equal_null", "hash", "isnotnull"),
        *("isnull", "map", "named_struct", "now", "rand", "session_window", "struct", "uuid", "xxhash64"),
    ]
)
_FIRST_KNOWN = frozenset({"coalesce", "greatest", "ifnull", "least", "nvl"})
_LIKE_ITS_ARGUMENTS = frozenset(
    [
        *("abs", "base64", "bigint", "concat", "crc32", "date_add", "date_format", "date_sub", "datediff"),
        *(
            "dayofweek",
            "hex",
            "hour",
            "initcap",
            "instr",
            "length",
            "lower",
            "lpad",
            "md5",
            "minute",
            "month",
        ),
        *("repeat", "replace", "reverse", "second", "sha1", "sha2", "soundex", "string", "substring"),
        *("trim", "upper", "year"),
    ]
)
_ALWAYS_MAYBE = frozenset({"get_json_object", "nullif", "to_csv", "to_json"})
# Their forms may be null, but no values make them so, or fail.
_OF_ANY_VALUE = frozenset({"ceil", "ceiling", "floor", "regexp_replace", "round", "split"})
_VALUES = (exp.Literal, exp.Boolean, exp.Interval)
_NEVER_NULL = (exp.Is, exp.NullSafeEQ)
_DIVIDES = (exp.Div, exp.IntDiv, exp.Mod)
_THROUGH = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Not, exp.And, exp.Or, exp.Between, exp.In, exp.DPipe),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike, exp.RegexpLike),
)


def nulls_in(tree: exp.Expr, resolve: Resolve) -> frozenset[str]:
    """What makes an expression null, as `gem_bundle.lineage.Made.nulls` has it.

    Args:
        tree: The expression.
        resolve: The same of what a name means.
    """
    found = _by_form(tree, resolve)
    if found and found <= _BY_ITSELF and _is_constant(tree):
        return _of_constant(tree)
    return found


def _by_form(tree: exp.Expr, resolve: Resolve) -> frozenset[str]:
    node = bare(tree)
    parts = parts_of(node)
    if parts is not None:
        return resolve(parts)
    if isinstance(node, exp.Alias | exp.Filter):
        return nulls_in(node.this, resolve)  # of a function of no rows it is known as of one of some
    if isinstance(node, exp.Null):
        return _MAYBE
    if isinstance(node, (*_VALUES, *_NEVER_NULL)):
        return NEVER
    if isinstance(node, _DIVIDES):
        return _any(node.iter_expressions(), resolve) | _MAYBE
    if isinstance(node, _THROUGH):
        return _any(node.iter_expressions(), resolve)
    if isinstance(node, exp.Cast):
        found = nulls_in(node.this, resolve)
        # There is a text for each value.
        value = bare(node.this)
        # A number with a suffix is parsed as one that is tried.
        is_value = isinstance(value, exp.Literal) and not (isinstance(node, exp.TryCast) and value.is_string)
        plain = node.is_type("string") or is_value
        return found if plain else found | _UNCERTAIN
    if isinstance(node, exp.Case):
        values = [branch.args["true"] for branch in node.args.get("ifs") or ()]
        last = node.args.get("default")
        is_told = last is not None or any(
            isinstance(branch.this, exp.Boolean) and branch.this.this for branch in node.args.get("ifs") or ()
        )
        return _any(values if last is None else [*values, last], resolve) | (NEVER if is_told else _MAYBE)
    if isinstance(node, exp.Anonymous):
        return _of_call(node.name.lower(), node.expressions, resolve)
    return _any(node.iter_expressions(), resolve) | _UNCERTAIN


def _is_constant(tree: exp.Expr) -> bool:
    """Whether Spark works an expression out when it plans a query: its rule `ConstantFolding`."""
    return not any(
        parts_of(node) is not None
        or isinstance(node, exp.Star | exp.Query)
        or (isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES)
        for node in tree.walk()
    )


def _of_constant(tree: exp.Expr) -> frozenset[str]:
    """Of what Spark works out it knows whether it is null; here that is known of nulls and of divisions."""
    node = bare(tree)
    if isinstance(node, exp.Null):
        return _MAYBE
    parts = [nulls_in(part, lambda _: _UNCERTAIN) for part in node.iter_expressions()]
    if isinstance(node, _DIVIDES) and not any(parts) and _is_a_number_but_zero(node.expression):
        return NEVER
    if isinstance(node, exp.Anonymous) and node.name.lower() in _OF_ANY_VALUE and not any(parts):
        return NEVER
    return _MAYBE if isinstance(node, _THROUGH) and _MAYBE in parts else _UNCERTAIN


def _is_a_number_but_zero(node: exp.Expr) -> bool:
    literal = bare(node)
    try:
        return isinstance(literal, exp.Literal) and float(literal.this) != 0
    except ValueError:
        return False


def _of_call(name: str, arguments: Sequence[exp.Expr], resolve: Resolve) -> frozenset[str]:
    if name in _TOTAL:
        return NEVER
    if name == "window":
        return _of_window(arguments)
    if name in _ALWAYS_MAYBE or name in AGGREGATES:
        return _MAYBE
    if name in {"if", "nvl2"}:
        return _any(arguments[1:], resolve)
    each = [nulls_in(argument, resolve) for argument in arguments]
    if name in _FIRST_KNOWN and not all(each):
        return NEVER
    found = NEVER.union(*each)
    return found if name in _LIKE_ITS_ARGUMENTS else found | _UNCERTAIN


def _of_window(arguments: Sequence[exp.Expr]) -> frozenset[str]:
    """Of windows that overlap, Spark takes each for one that may be null."""
    lengths = [argument.this for argument in arguments[1:3] if isinstance(argument, exp.Literal)]
    if len(lengths) < len(arguments[1:3]):
        return _UNCERTAIN
    try:
        return NEVER if len({interval_length(length) for length in lengths}) < 2 else _MAYBE
    except ValueError:
        return _UNCERTAIN


def _any(nodes: Iterable[exp.Expr], resolve: Resolve) -> frozenset[str]:
    return NEVER.union(*(nulls_in(node, resolve) for node in nodes))
