"""What Spark takes out of what has been put together, when it plans: its rules `SimplifyExtractValueOps`,
`PushFoldableIntoBranches` and `ConstantFolding`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from gem_bundle.changes.forms import columns_in, is_column, kind_of
from gem_bundle.ddl import DataType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.changes.forms import Form

Path = tuple[str, ...]
"""The way into a column: fields by their names in lower case, elements in brackets; empty for all of it."""

EACH = "*"
"""Stands on a way for each of the elements that a column is taken apart into."""
SIZE = "#"
"""Stands on a way for how many elements there are."""

_NULL: Form = ("Null", ())
_SIZES = frozenset({"size", "cardinality", "array_size"})


class _Built(NamedTuple):
    """What something is put together of.

    Args:
        kind: As what: a ``struct``, ``array`` or ``map``.
        parts: What each field is made of by its name in lower case, each value by its key, or each element by
            its place.
    """

    kind: str
    parts: dict[str, Form]


class _Either(NamedTuple):
    """One of several values.

    Args:
        conditions: What decides which.
        value: The one of them that is made of columns.
    """

    conditions: list[Form]
    value: Form


def is_built(form: Form) -> bool:
    """Whether Spark may take a part of something out of what that is put together of.

    Args:
        form: How it is made.
    """
    return is_collection(form) or _either(form) is not None


def is_collection(form: Form) -> bool:
    """Whether something is put together, and not one of several that are.

    Args:
        form: How it is made.
    """
    return _built(form) is not None


def extracted(form: Form, way: Iterable[str]) -> Form:
    """What a way into something leads to, as Spark has it when it has planned.

    Args:
        form: How that is made.
        way: The way.
    """
    for step in way:
        form = _part(form, step)
    return form


def simplified(form: Form) -> Form:
    """An expression without what is put together in it and taken apart again.

    Args:
        form: The expression.
    """
    if is_column(form):
        return form
    form = tuple(simplified(part) if isinstance(part, tuple) else part for part in form)
    match form:
        case ("Dot", (("this", inner), ("expression", (str(field),)))):
            return _part(cast("Form", inner), field.lower())
        case ("Bracket", (("this", inner), ("expressions", (("Literal", (("this", at), *_)),)))) | (
            "get",
            (inner, ("Literal", (("this", at),))),
        ):
            return _part(cast("Form", inner), f"[{at}]")
        case ("field", (inner, tuple(fields))):
            return extracted(cast("Form", inner), map(str, fields))
        case (str(name), (tuple(inner),)) if name in _SIZES:
            return _part(inner, SIZE)
    return form


def taken_before(kind: DataType, way: Path) -> tuple[Path, DataType]:
    """How much of a way Spark takes before what the column goes through: its rule `NestedColumnAliasing`.

    Args:
        kind: The type of the column.
        way: The way.

    Returns:
        The way to the last field on it, and that one's type: an element alone isn't taken out before.
    """
    last: tuple[Path, DataType] = (), kind
    for number, step in enumerate(way, 1):
        if step == SIZE:
            break
        reached = _step(kind, step)
        if reached is None:
            return (), kind
        # A text in brackets names a field of a struct.
        if kind.name == "struct" or (kind.name == "array" and step != EACH and not step.startswith("[")):
            last = way[:number], reached
        kind = reached
    return last


def _step(kind: DataType, step: str) -> DataType | None:
    if step == EACH:
        return kind if kind.name == "array" else None
    if kind.name == "map":
        return kind.parts[1]
    if kind.name == "array":
        if step.startswith("["):
            return kind.parts[0]
        # A field of the elements is an array of those.
        reached = _step(kind.parts[0], step) if kind.parts[0].name == "struct" else None
        return None if reached is None else DataType("array", parts=(reached,))
    return next((f.type for f in kind.fields if f.name.lower() == step.strip("[]").lower()), None)


def _part(form: Form, step: str) -> Form:
    if is_column(form):
        return (*form, step)
    built = _built(form) if step != EACH else None
    if built is not None and (part := _part_of(built, step)) is not None:
        return part
    # Of what is one of several, a field is taken out of the one that has columns, if it is the only one.
    if (either := _either(form)) is not None and step not in {EACH, SIZE} and not step.startswith("["):
        inner = _built(either.value)
        if inner is None or inner.kind != "map":
            return ("either", (*either.conditions, _part(either.value, step)))
    return ("field", (form, (step,)))


def _part_of(built: _Built, step: str) -> Form | None:
    if step == SIZE:
        return _NULL  # it is a constant
    if built.kind == "array" and not step.startswith("["):
        # A field of the elements is an array of those.
        return ("array", tuple(_part(part, step) for part in built.parts.values()))
    # A struct that has no such field is one whose fields' names aren't known.
    return built.parts.get(step.strip("[]").lower(), None if built.kind == "struct" else _NULL)


def _built(form: Form) -> _Built | None:
    kind = kind_of(form)
    if kind not in {"struct", "named_struct", "array", "map"} or len(form) < 2 or not _are_forms(form[1]):
        return None
    parts = cast("tuple[Form, ...]", form[1])
    if kind == "array":
        return _Built(kind, {str(place): part for place, part in enumerate(parts)})
    if kind != "struct":
        names = [text.lower() for part in parts[::2] if (text := _text_in(part)) is not None]
        values = parts[1::2]
        if len(names) != len(values) or len(parts) % 2:
            return None
        return _Built(kind.removeprefix("named_"), dict(zip(names, values, strict=True)))
    found: dict[str, Form] = {}
    for number, part in enumerate(parts, 1):
        # What has a name of its own has it behind it.
        if len(part) == 2 and isinstance(part[0], tuple) and isinstance(part[1], str):
            found[part[1].lower()] = part[0]
        elif is_column(part):
            last = str(part[-1])
            found[(last if len(part) > 1 else last.partition(":")[2]).lower()] = part
        else:
            found[f"col{number}"] = part
    return _Built(kind, found)


def _either(form: Form) -> _Either | None:
    """What is one of several values, of which one has columns; None for anything else."""
    match form:
        case ("either", (*told, value)):
            return _Either(cast("list[Form]", told), cast("Form", value))
        case ("if" | "nvl2", (condition, *several)) if _are_forms((condition, *several)):
            conditions, values = [cast("Form", condition)], cast("list[Form]", several)
        case ("Case", given) if _are_forms(given):
            case = _named(given)
            branches = [_named(branch[1]) for branch in cast("tuple[Form, ...]", case["ifs"])]
            conditions = [one["this"] for one in (case, *branches) if "this" in one]
            values = [branch["true"] for branch in branches]
            if "default" in case:
                values.append(case["default"])
        case _:
            return None
    made = [value for value in values if columns_in(value)]
    return _Either(conditions, made[0]) if len(made) == 1 else None


def _are_forms(given: object) -> bool:
    """Whether something is several forms: what a gem says of a rule may be anything."""
    return isinstance(given, tuple) and all(isinstance(part, tuple) for part in given)


def _named(given: object) -> dict[str, Form]:
    return dict(cast("tuple[tuple[str, Form], ...]", given))


def _text_in(form: object) -> str | None:
    """The text that a literal is; None for anything else."""
    match form:
        case ("Literal", (("this", str(text)), *_)):
            return text
    return None
