"""What ends a query whose changes can't be put in order."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gem_bundle.errors import GemError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.types import DataType

# What `raise_error` says in a query, and what that means.
_REFUSALS = {
    "gem-bundle:several-rows": (
        "several rows of a key are in one micro-batch, and nothing tells which is the last",
        "Nothing of the micro-batch is in the table. Give `sequence_by`, or have one row of each key by "
        "`aggregate` or `deduplicate`.",
    ),
    "gem-bundle:no-sequence": (
        "a row has no value in its sequence, so it can't be told which changes it comes after",
        "Nothing of the micro-batch is in the table. Leave such rows out with `filter` or `expect`.",
    ),
}
SEVERAL_ROWS, NO_SEQUENCE = _REFUSALS
_REFUSED = re.compile("|".join(_REFUSALS))


@contextmanager
def refused() -> Iterator[None]:
    """Say in a sentence what a query of ours has raised."""
    try:
        yield
    except Exception as error:
        match = _REFUSED.search(str(error))
        if match is None:
            raise
        message, hint = _REFUSALS[match[0]]
        raise GemError("GB515", message, hint) from error


def is_orderable(kind: DataType) -> bool:
    """Whether Spark can tell which of two values of a type is the greater one."""
    from pyspark.sql.types import ArrayType, CalendarIntervalType, MapType, StructType, VariantType

    if isinstance(kind, ArrayType):
        return is_orderable(kind.elementType)
    if isinstance(kind, StructType):
        return all(is_orderable(field.dataType) for field in kind.fields)
    return not isinstance(kind, MapType | VariantType | CalendarIntervalType)
