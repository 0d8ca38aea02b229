"""What an expression takes of the columns that it is made of: all of one, or a field."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from gem_bundle.changes.extracted import EACH, is_built, simplified
from gem_bundle.changes.forms import columns_in, conditions_of, form_made_by, is_column, put_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gem_bundle.changes.forms import Form
    from gem_bundle.lineage import Made

Taken = tuple[str, tuple[str, ...]]
"""What is taken: the column, behind the position of its input, and the way into it."""

_FIELD = re.compile(r"\.(?P<way>\w+(\.\w+)*)")
_APART = re.compile(r"\('explode(_outer)?', \(\('\d+:[^']+',\),\)\)")
_PUT_TOGETHER = re.compile(r"'(struct|named_struct|array|map)\\*', ")
# A field of the rows that a column is taken apart into.
_OF_ELEMENTS = re.compile(rf"{_FIELD.pattern} of \[\('\w+', \"{_APART.pattern}\", .*\]")


def is_taken_out(made: Made) -> bool:
    """Whether something is taken out, or may be, of what a query within another one puts together.

    Args:
        made: How it is made.
    """
    return " of [" in made.rule and puts_together(made)


def puts_together(made: Made) -> bool:
    """Whether a struct, an array or a map is put together somewhere in something, without a look at its form.

    Args:
        made: How it is made.
    """
    return _PUT_TOGETHER.search(made.rule) is not None


def taken_by(made: Made) -> Iterator[Taken]:
    """What something takes of the columns that it is made of.

    Args:
        made: How it is made.
    """
    yield from taken_in(form_taken(made))


def taken_by_rows(rows: Made) -> Iterator[Taken]:
    """What the condition of a node takes of columns.

    What takes a column apart asks nothing of it by that.

    Args:
        rows: How it is decided which rows come out.
    """
    if _APART.fullmatch(rows.rule):
        return
    if conditions := conditions_of(rows.rule):
        yield from taken_in(conditions)
    else:
        yield from taken_by(rows)


def taken_in(form: Form) -> Iterator[Taken]:
    """What an expression takes of columns.

    Args:
        form: The expression.
    """
    yield from _taken_in(simplified(form))


def form_taken(made: Made) -> Form:
    """The form of something that is made of columns, with the ways into them.

    Args:
        made: How it is made; where that can't be told it is made of all of each.
    """
    uses = made.in_order
    if len(uses) == 1:
        if field := _FIELD.fullmatch(made.rule):
            return (*uses, *field["way"].split("."))
        if field := _OF_ELEMENTS.fullmatch(made.rule):
            return (*uses, EACH, *field["way"].split("."))
        if _APART.fullmatch(made.rule):
            return (*uses, EACH)
    form = form_made_by(made)
    if form is None or not columns_in(form).issuperset(uses):
        return tuple((use,) for use in uses)  # a rule that only its gem understands
    return simplified(form)


def put_over(form: Form, of: Callable[[str], Form]) -> Form:
    """An expression over what its columns are made of.

    Args:
        form: The expression.
        of: What a column is made of.
    """
    found = simplified(put_in(form, {use: of(use) for use in columns_in(form)}))
    if is_column(found) or is_built(found):
        return found
    # Of what can't be taken apart nothing counts but what it takes, however often.
    return tuple((name, *way) for name, way in dict.fromkeys(taken_in(found)))


def _taken_in(form: Form) -> Iterator[Taken]:
    if is_column(form):
        name, *way = cast("tuple[str, ...]", form)
        yield name, tuple(way)
        return
    for part in form:
        if isinstance(part, tuple):
            yield from _taken_in(part)
