"""Of which columns a condition leaves out nulls, as Spark reads it off its form, and whether it is ever true.

Spark asks for such a column by itself, as early as it can, and takes it for never null behind that.
Imports sqlglot, whose trees it works on.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gem_bundle.expressions.constants import COMPARE, UNKNOWN, value_of
from gem_bundle.expressions.functions import BY_CHANCE
from gem_bundle.expressions.spark_parser import exp
from gem_bundle.expressions.trees import UNIT_FIRST, bare, parts_of, shape
from gem_bundle.lineage import NEVER_TRUE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Names = Mapping[tuple[str, ...], tuple[str, ...]]

# What is null wherever one of its operands is, and Spark knows it of.
_INTOLERANT = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Cast, exp.Between, exp.Extract),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike, exp.RegexpLike),
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.Bracket, exp.Substring),
)
# Measured on Spark 4.2; `trim`, `concat`, `round`, `size` and `date_trunc` aren't among them.
_CALLS = """
    abs add_months array_contains array_position arrays_overlap ascii base64 bigint bin binary bit_count
    boolean char_length character_length contains convert_timezone crc32 date date_add date_diff
    date_format date_from_unix_date date_part date_sub dateadd datediff day dayofmonth dayofweek dayofyear
    decimal div double element_at endswith exp factorial float from_unixtime from_utc_timestamp getbit hex
    hour ilike initcap instr int isnotnull last_day left length levenshtein like ln log10 lower lpad
    make_dt_interval map_contains_key md5 minute mod month months_between next_day octet_length pmod pow
    power quarter regexp_extract regexp_replace repeat replace reverse rlike rpad second sha sha1
    sha2 shiftleft shiftright sign signum smallint sort_array soundex split split_part sqrt startswith
    string substr substring substring_index timestamp timestamp_seconds timestampadd timestampdiff tinyint
    to_utc_timestamp translate try_add ucase unix_date unix_millis unix_seconds upper weekofyear year
"""
_INTOLERANT_CALLS = frozenset(_CALLS.split())
# With a second argument they are other expressions.
_INTOLERANT_ALONE = frozenset({"ceil", "ceiling", "floor", "to_date", "to_timestamp"})
# Of more kinds of nulls nobody writes a condition.
_KINDS = 100
OPPOSITE: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.GTE: exp.LT,
    exp.GT: exp.LTE,
    exp.LTE: exp.GT,
}
"""What a comparison is behind `not`."""


def asked_of(
    tree: exp.Expr,
    resolved: Callable[[Sequence[str]], str | None],
    columns: Names,
) -> frozenset[str]:
    """The columns of which a condition leaves out nulls, as `gem_bundle.lineage.Lineage.asks` has them.

    Args:
        tree: The condition.
        resolved: Called with the parts of a name: the column that it is, None where that isn't known.
        columns: Which columns its names are, as `shape` takes them: two inputs may have one of a name.
    """
    parts = _all_of(tree, columns, negated=False)
    if (
        None in parts
        or _contradicts([part for part in parts if part is not None], columns)
        or _denies_itself(tree, columns, negated=False)
    ):
        return frozenset({NEVER_TRUE})
    return frozenset[str]().union(*(_needed(part, resolved) for part in parts if part is not None))


def nulls_left_out(
    tree: exp.Expr, resolved: Callable[[Sequence[str]], str | None]
) -> frozenset[frozenset[str]]:
    """What `gem_bundle.lineage.Lineage.only_nulls` has of a condition that leaves out nothing but nulls.

    Args:
        tree: The condition.
        resolved: Called with the parts of a name: the column that it is, None where that isn't known.
    """
    node = bare(tree)
    if isinstance(node, exp.And | exp.Or):
        one, other = (nulls_left_out(side, resolved) for side in (node.this, node.expression))
        if not one or not other or len(one) * len(other) > _KINDS:
            return frozenset()
        return one | other if isinstance(node, exp.And) else frozenset(a | b for a in one for b in other)
    tested: exp.Expr | None = None
    if isinstance(node, exp.Not) and isinstance(bare(node.this), exp.Is):
        test = bare(node.this)
        tested = test.this if isinstance(bare(test.expression), exp.Null) else None
    elif isinstance(node, exp.Anonymous) and node.name.lower() == "isnotnull":
        tested = node.expressions[0] if len(node.expressions) == 1 else None
    parts = None if tested is None else parts_of(bare(tested))
    found = None if parts is None else resolved(parts)
    return frozenset() if found is None else frozenset({frozenset({found})})


def _all_of(tree: exp.Expr, columns: Names, *, negated: bool) -> list[exp.Expr | None]:
    """What must hold for a condition, or for its opposite; None among it is what never does."""
    node = bare(tree)
    known = value_of(node)
    if known is not UNKNOWN:
        return [] if known is not None and known is not negated else [None]
    if isinstance(node, exp.Not):
        return _all_of(node.this, columns, negated=not negated)
    if isinstance(node, exp.Or if negated else exp.And):
        both = (node.this, node.expression)
        return [part for side in both for part in _all_of(side, columns, negated=negated)]
    if isinstance(node, exp.And if negated else exp.Or):
        # What is known of one side is left out: with nothing but the other side it says as much.
        sides = [_all_of(side, columns, negated=negated) for side in (node.this, node.expression)]
        for one, other in (sides, sides[::-1]):
            if None in one:
                return other
        return _either(sides[0], sides[1], columns)
    if isinstance(node, exp.Between) and negated:
        return [exp.Null()]  # before the one bound or behind the other
    if isinstance(node, exp.In) and len(node.expressions) == 1:
        return [_maybe_not(exp.EQ(this=node.this, expression=node.expressions[0]), negated=negated)]
    if isinstance(node, exp.Is) and isinstance(bare(node.expression), exp.Null):
        return [exp.Anonymous(this="isnotnull", expressions=[node.this])] if negated else [exp.Null()]
    if isinstance(node, exp.Anonymous) and node.name.lower() == "isnull":
        return [exp.Anonymous(this="isnotnull", expressions=node.expressions)] if negated else [exp.Null()]
    if isinstance(node, exp.Anonymous) and node.name.lower() == "isnotnull":
        return [exp.Null()] if negated else [node]
    return [_maybe_not(node, negated=negated)]


def _maybe_not(node: exp.Expr, *, negated: bool) -> exp.Expr:
    """A comparison, or its opposite; of others the opposite is null where they are."""
    opposite = OPPOSITE.get(type(node)) if negated else None
    return node if opposite is None else opposite(this=node.this, expression=node.expression)


def _either(
    one: list[exp.Expr | None], other: list[exp.Expr | None], columns: Names
) -> list[exp.Expr | None]:
    """What must hold where one of two conditions does: what both ask for, and maybe more."""
    if [] in (one, other):
        return []
    known = {_shape(part, columns) for part in other}
    common = [part for part in one if _shape(part, columns) in known]
    shared = {_shape(part, columns) for part in common}
    left_over = [bool({_shape(part, columns) for part in side} - shared) for side in (one, other)]
    return [*common, exp.Null()] if all(left_over) else common


def _shape(part: exp.Expr | None, columns: Names) -> object:
    return None if part is None else shape(part, columns)


def _contradicts(parts: list[exp.Expr], columns: Names) -> bool:
    """Whether parts of a condition never hold together, as Spark finds it by their form."""
    bares = [bare(part) for part in parts]
    compared = [part for part in bares if type(part) in COMPARE]
    values: dict[object, Any] = {}
    for part in compared:
        name, value = _column_and_value(part, columns)
        if name is not None and isinstance(part, exp.EQ) and values.setdefault(name, value) != value:
            return True
    for part in compared:
        one, other = _shape(part.this, columns), _shape(part.expression, columns)
        if one == other and parts_of(bare(part.this)) is not None and not COMPARE[type(part)](0, 0):
            return True
        name, value = _column_and_value(part, columns)
        known = values.get(name)
        if name is not None and type(known) is type(value) and not COMPARE[type(part)](known, value):
            return True
    return False


def _denies_itself(tree: exp.Expr, columns: Names, *, negated: bool) -> bool:
    """Whether a condition and its opposite are the two sides of one `and` that must hold.

    Spark compares the two sides, and not what stands further apart: `a and b and not a` it computes.
    """
    node = bare(tree)
    if isinstance(node, exp.Not):
        return _denies_itself(node.this, columns, negated=not negated)
    if not isinstance(node, exp.Or if negated else exp.And):
        return False
    if are_contrary(node.this, node.expression, columns):
        return True
    return any(_denies_itself(side, columns, negated=negated) for side in (node.this, node.expression))


def are_contrary(one: exp.Expr, other: exp.Expr, columns: Names) -> bool:
    """Whether of two conditions one is the contrary of the other, and Spark sees that.

    Args:
        one: The one.
        other: The other.
        columns: Which columns their names are, as `shape` takes them.
    """
    signed = [_signed(part, columns, negated=False) for part in (one, other)]
    if signed[0] is None or signed[1] is None:
        return False
    return signed[0][1] == signed[1][1] and signed[0][0] is not signed[1][0]


def _signed(tree: exp.Expr, columns: Names, *, negated: bool) -> tuple[bool, object] | None:
    """Whether a condition is denied, and which it is; None where Spark makes another one of it first."""
    node = bare(tree)
    if isinstance(node, exp.Not):
        return _signed(node.this, columns, negated=not negated)
    if isinstance(node, exp.And | exp.Or | exp.Between | exp.Is) or is_of_chance(node):
        return None
    if isinstance(node, exp.Anonymous) and node.name.lower() in {"isnull", "isnotnull"}:
        return None
    if isinstance(node, exp.NEQ | exp.GTE | exp.LTE):
        node, negated = OPPOSITE[type(node)](this=node.this, expression=node.expression), not negated
    return negated, _shape(node, columns)


def is_of_chance(tree: exp.Expr) -> bool:
    """Whether an expression is another thing each time.

    Args:
        tree: The expression.
    """
    return any(node.name.lower() in BY_CHANCE for node in tree.find_all(exp.Anonymous))


def _column_and_value(part: exp.Expr, columns: Names) -> tuple[object, Any]:
    """The column that a comparison is about and the text or number behind it; None for another one."""
    value = value_of(part.expression)
    if parts_of(bare(part.this)) is None or not isinstance(value, str | Decimal):
        return None, None
    return _shape(part.this, columns), value


def _needed(node: exp.Expr, resolved: Callable[[Sequence[str]], str | None]) -> set[str]:
    """The columns that must not be null for an expression not to be null, by its form."""
    node = bare(node)
    parts = parts_of(node)
    if parts is not None:
        found = resolved(parts)
        return set() if found is None else {found}
    return set().union(*(_needed(inner, resolved) for inner in null_without(node)))


def needed_by(tree: exp.Expr) -> set[str]:
    """The columns, or those of which fields are taken, that must not be null for an expression not to be.

    Args:
        tree: The expression, whose columns are called by the positions of their inputs.
    """
    return _needed(tree, lambda parts: parts[0])


def null_without(node: exp.Expr) -> Iterable[exp.Expr]:
    """The operands of an expression that is null without any of them, as Spark knows it; none of others.

    Args:
        node: The expression.
    """
    if isinstance(node, exp.Cast):
        return [node.this]
    if isinstance(node, _INTOLERANT):
        return node.iter_expressions()
    if isinstance(node, exp.Anonymous):
        name, arguments = node.name.lower(), node.expressions
        if name in _INTOLERANT_CALLS or (name in _INTOLERANT_ALONE and len(arguments) == 1):
            return arguments[1:] if name in UNIT_FIRST and len(arguments) == 3 else arguments
    return []
