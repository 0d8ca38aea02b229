"""How the files of a table are laid out: what `partition_by`, `cluster_by` and `z_order_by` may name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gem_bundle import Finding
from gem_bundle.diagnostics import suggest
from gem_bundle.schema import type_of, without_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gem_bundle import Facts
    from gem_bundle.schema import DataType
    from gem_delta.into import DeltaTargetOptions
    from gem_delta.log import TableMetadata

_COMPOSED = frozenset({"array", "map", "struct", "variant"})
# Those of which Delta keeps no least and no greatest value.
_UNRANGED = _COMPOSED | {"binary", "boolean"}


def check_layout(
    options: DeltaTargetOptions, rows: Facts, written: Facts, there: TableMetadata | None, *, new: bool
) -> Iterator[Finding]:
    """What is wrong with the columns by which files are laid out.

    Args:
        options: The options of the target.
        rows: The rows that come.
        written: What of them a new table gets.
        there: The table that is there; None when nothing is known of it.
        new: It is known that no table is there.
    """
    yield from _check_new(options, rows, written)
    operations = options.table_operations
    if operations is not None and operations.z_order_by:
        yield from _check_order(options, operations.z_order_by, written, there, new=new)


def _check_new(options: DeltaTargetOptions, rows: Facts, written: Facts) -> Iterator[Finding]:
    """What a new table is partitioned or clustered by: columns that it gets, of types that can be used so."""
    for option, refused, why in (
        ("partition_by", _COMPOSED, "and partitions are by single values"),
        ("cluster_by", _UNRANGED, "of which Delta keeps no least and greatest value"),
    ):
        names: Sequence[str] = getattr(options, option)
        for name in names:
            column = written.column(name)
            if column is None and written.columns is not None:
                known = [column.name for column in written.columns]
                left_out = rows.column(name) is not None
                message = f"the table doesn't get `{name}`" if left_out else f"there is no column `{name}`"
                hint = "" if left_out else suggest(name, known, what="columns")
                yield Finding("GB210", message, hint or "Name a column that the table gets.", option)
            kind = _type(column.type) if column is not None else None
            if kind is not None and kind.name in refused:
                yield Finding("GB213", f"`{name}` is {kind}, {why}", "Name other columns.", option)
    partitions = {name.lower() for name in options.partition_by}
    if written.columns and partitions.issuperset(column.name.lower() for column in written.columns):
        yield Finding("GB205", "all columns are in `partition_by`; none is left", "", "partition_by")


def _check_order(
    options: DeltaTargetOptions,
    names: Sequence[str],
    written: Facts,
    there: TableMetadata | None,
    *,
    new: bool,
) -> Iterator[Finding]:
    """What a table is put in order by: columns that it has, none of its partitions, that can be compared."""
    place = ("table_operations", "z_order_by")
    columns = {
        column.name.lower(): column
        for column in (*(written.columns or ()), *(there.columns if there else ()))
    }
    partitions = {name.lower() for name in (*options.partition_by, *(there.partitions if there else ()))}
    # A table that isn't seen from here may have more columns than the rows.
    severity: Literal["error", "warning"] = "error" if there is not None or new else "warning"
    for name in names:
        column = columns.get(name.lower())
        if column is None and written.columns is not None:
            said = "there is no column" if severity == "error" else "the rows have no column"
            hint = suggest(name, [column.name for column in columns.values()], what="columns")
            message = f"{said} `{name}`, and Delta puts a table in order by columns that it has"
            yield Finding("GB210", message, hint or "Name other columns.", place, severity)
        elif name.lower() in partitions:
            message = f"`{name}` is a column of partitions, and all rows of a file have one value of it"
            yield Finding("GB207", message, "Remove it from `z_order_by`.", place)
        elif column is not None and without_order(column.type):
            message = f"`{name}` is {column.type}, which has no order"
            yield Finding("GB213", message, "Name other columns.", place)


def _type(kind: str | None) -> DataType | None:
    return None if kind is None else type_of(kind)
