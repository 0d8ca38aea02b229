"""Which columns Spark can't write as a record: the rules of its `AvroSerializer`, tried against it."""

from collections.abc import Iterable, Iterator
from typing import Any

from gem_avro.parsing import Node, Part, Schema, parsed
from gem_bundle import Column
from gem_bundle.avro import AvroSchema
from gem_bundle.schema import DataType, type_of, with_article

# What Avro has for each of Spark's types; of the others nothing is said.
_WRITTEN = {
    "boolean": {"boolean"},
    "tinyint": {"int"},
    "smallint": {"int"},
    "int": {"int"},
    "bigint": {"long"},
    "float": {"float"},
    "double": {"double"},
    "string": {"string", "enum"},
    "binary": {"bytes", "fixed"},
    "date": {"int"},
    "timestamp": {"long"},
    "timestamp_ntz": {"long"},
    "decimal": {"bytes", "fixed", "long"},
    "array": {"array"},
    "map": {"map"},
    "struct": {"record"},
}


def misfits(columns: Iterable[Column], schema: AvroSchema) -> Iterator[tuple[str, str]]:
    """What Spark would fail at with the first row.

    Args:
        columns: The columns that are packed; those without a type are believed.
        schema: The schema of the record.

    Yields:
        What is wrong, and what to do about it.
    """
    record = parsed(schema.text)
    fields = [(column.name, None if column.type is None else type_of(column.type)) for column in columns]
    yield from _of_record(record, _record(record, record.root), fields, "")


def _record(schema: Schema, part: Part) -> Node:
    node = schema.of(part)
    if node.kind != "union":
        return node
    return next(found for found in map(schema.of, node.branches) if found.kind != "null")


def _of_record(
    schema: Schema, record: Node, fields: list[tuple[str, DataType | None]], before: str
) -> Iterator[tuple[str, str]]:
    there = {each.name.lower(): each for each in record.fields}
    names = {name.lower() for name, _ in fields}
    for name, kind in fields:
        found = there.get(name.lower())
        if found is None:
            message = f"`{before}{name}` is packed, and {record.told} has no such field"
            yield message, "Name in `columns` what is to be packed, or add the field to the schema."
        elif kind is not None:
            yield from _of_value(schema, found.part, kind, f"{before}{name}")
    for each in record.fields:
        if each.name.lower() not in names and not _takes_null(schema, each.part):
            message = f"{record.told} has a field `{before}{each.name}`, and nothing is packed into it"
            yield message, "Pack a column of that name, or let the field be a union with null."


def _takes_null(schema: Schema, part: Part) -> bool:
    node = schema.of(part)
    return node.kind == "null" or any(schema.of(each).kind == "null" for each in node.branches)


def _of_value(schema: Schema, part: Part, kind: DataType, path: str) -> Iterator[tuple[str, str]]:
    node = schema.of(part)
    if node.kind == "union":
        some = [each for each in map(schema.of, node.branches) if each.kind != "null"]
        if len(some) != 1:
            return  # Spark has types for some of them, which aren't looked at here
        node = some[0]
    wanted: Any = _WRITTEN.get(kind.name)
    if wanted is None:
        return
    if node.kind not in wanted:
        message = f"`{path}` is {with_article(kind)}, and the schema has {node.told} there"
        yield message, "Cast the column, or change the schema."
    elif kind.name == "struct":
        yield from _of_record(schema, node, [(each.name, each.type) for each in kind.fields], f"{path}.")
    elif kind.name in {"array", "map"}:
        yield from _of_value(schema, node.items, kind.parts[-1], f"{path}[]")
