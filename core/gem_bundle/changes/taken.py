"""What an expression takes of the columns that it is made of: all of one, or a field."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from gem_bundle.changes.forms import form_made_by, form_of, is_column
from gem_bundle.lineage import UNCHANGED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.changes.forms import Form
    from gem_bundle.lineage import Made

Path = tuple[str, ...]
"""The way into a column: fields by their names in lower case, elements in brackets; empty for all of it."""
Taken = tuple[str, Path]
"""What is taken: the column, behind the position of its input, and the way into it."""

EACH = "*"
"""Stands on a way for each of the elements that a column is taken apart into."""

_FIELD = re.compile(r"\.(?P<way>\w+(\.\w+)*)")
_APART = re.compile(r"\('explode(_outer)?', \(\('\d+:[^']+',\),\)\)")
_TOGETHER = re.compile(r"\('(struct|named_struct|array|map)', ")
# A field of the rows that a column is taken apart into.
_OF_ELEMENTS = re.compile(rf"{_FIELD.pattern} of \[\('\w+', \"{_APART.pattern}\", .*\]")


def column_taken(made: Made) -> Taken | None:
    """What something is, where it is nothing but a column, or a part of one.

    Args:
        made: How it is made.
    """
    if made.uses is None or len(made.uses) != 1:
        return None
    (one,) = made.uses
    if made.rule in UNCHANGED:
        return one, ()
    if field := _FIELD.fullmatch(made.rule):
        return one, tuple(field["way"].split("."))
    if field := _OF_ELEMENTS.fullmatch(made.rule):
        return one, (EACH, *field["way"].split("."))
    if _APART.fullmatch(made.rule):
        return one, (EACH,)
    form = form_made_by(made)
    return None if form is None else _taken(form)


def taken_by(made: Made) -> Iterator[Taken]:
    """What something takes of the columns that it is made of.

    Args:
        made: How it is made.
    """
    if (whole := column_taken(made)) is not None:
        yield whole
        return
    form = form_made_by(made)
    if form is not None:
        yield from taken_in(form)
        return
    for use in sorted(made.uses or ()):
        yield use, ()


def taken_by_rows(rows: Made) -> Iterator[Taken]:
    """What the condition of a node takes of columns.

    What takes a column apart asks nothing of it by that.

    Args:
        rows: How it is decided which rows come out.
    """
    if _APART.fullmatch(rows.rule):
        return
    # How a join joins stands before its condition, and a query has two of them.
    at = rows.rule.find("(")
    form = form_of(f"({rows.rule[at:].replace(') (', '), (')},)") if at >= 0 else None
    if form is not None:
        yield from taken_in(form)
    else:
        yield from taken_by(rows)


def taken_in(form: Form) -> Iterator[Taken]:
    """What an expression takes of columns.

    Args:
        form: The expression.
    """
    if (found := _taken(form)) is not None:
        yield found
        return
    for part in form:
        if isinstance(part, tuple):
            yield from taken_in(part)


def fields_of(made: Made) -> dict[str, list[Taken]]:
    """What each field of a struct takes that is put together of columns, or element of an array or map.

    Args:
        made: How the struct is made.

    Returns:
        That by the fields' names in lower case, by the keys, or by the places; empty for anything else.
    """
    form = form_made_by(made) if _TOGETHER.match(made.rule) else None
    if form is None or len(form) < 2 or not isinstance(form[1], tuple):
        return {}
    kind, parts = form[0], form[1]
    if kind == "array":
        return {str(place): list(taken_in(part)) for place, part in enumerate(parts)}
    if kind != "struct":
        names, values = [_text_in(part) for part in parts[::2]], parts[1::2]
        if None in names or len(names) != len(values):
            return {}
        return {str(n).lower(): list(taken_in(v)) for n, v in zip(names, values, strict=True)}
    found: dict[str, list[Taken]] = {}
    for part in parts:
        # What has a name of its own has it behind it.
        has_name = len(part) == 2 and isinstance(part[0], tuple) and isinstance(part[1], str)
        inner = part[0] if has_name else part
        taken = _taken(inner)
        if not has_name and taken is None:
            return {}
        name = (
            part[1] if has_name or taken is None else taken[1][-1] if taken[1] else taken[0].partition(":")[2]
        )
        found[str(name).lower()] = list(taken_in(inner))
    return found


def _text_in(form: object) -> str | None:
    """The text that a literal is; None for anything else."""
    match form:
        case ("Literal", (("this", str(text)), *_)):
            return text
    return None


def _taken(form: object) -> Taken | None:
    """The column of which something is taken, and the way to that; None for anything else."""
    if is_column(form):
        name, *way = cast("tuple[str, ...]", form)
        return name, tuple(way)
    match form:
        case ("Dot", (("this", inner), ("expression", (str(field),)))) if found := _taken(inner):
            return found[0], (*found[1], field.lower())
        case ("Bracket", (("this", inner), ("expressions", (("Literal", (("this", at), *_)),)))) if (
            found := _taken(inner)
        ):
            return found[0], (*found[1], f"[{at}]")
        case ("field", (inner, tuple(fields))) if found := _taken(inner):
            return found[0], (*found[1], *map(str, fields))
    return None
