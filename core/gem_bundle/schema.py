"""What a schema in DDL says, without a JVM: for gems whose rows have declared columns.

Types are written as Spark writes them back: ``long`` is ``bigint``, ``decimal`` is ``decimal(10,0)``.
"""

from typing import TYPE_CHECKING, Any, ClassVar

from gem_bundle.ddl import DataType, SchemaError, StructField, literal, quoted, read_columns, read_type
from gem_bundle.facts import Column
from gem_bundle.options import Options

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "DataType",
    "SchemaOptions",
    "StructField",
    "columns_of",
    "differ_for_certain",
    "fields_of",
    "literal",
    "quoted",
    "schema_of",
    "type_of",
]


class SchemaOptions(Options):
    """Options with one called ``schema``: derive from this instead of `Options`.

    pydantic's `BaseModel` has a method of that name, long deprecated, and warns when a field hides it.
    Here it is out of the way.
    """

    if not TYPE_CHECKING:

        class _Absent:
            def __get__(self, instance: object, owner: type) -> Any:
                raise AttributeError("schema")

        schema: ClassVar = _Absent()


def fields_of(schema: str) -> tuple[StructField, ...] | None:
    """The columns of a schema in DDL with their types taken apart.

    Args:
        schema: ``page string, at timestamp NOT NULL COMMENT 'when'``.

    Returns:
        The columns, or None when this is no DDL that can be read without Spark.
    """
    try:
        return read_columns(schema).fields
    except SchemaError:
        return None


def columns_of(schema: str) -> tuple[Column, ...] | None:
    """The columns of a schema in DDL, for a gem's `infer`; None when they can't be known."""
    fields = fields_of(schema)
    return None if fields is None else tuple(Column(f.name, str(f.type)) for f in fields)


def type_of(text: str) -> DataType | None:
    """A type in DDL taken apart (``array<long>``); None when it can't be read without Spark."""
    try:
        return read_type(text).type
    except SchemaError:
        return None


_FAMILIES = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"), "number"),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), "time"),
    **dict.fromkeys(("boolean", "binary", "array", "map", "struct"), ""),
}
_UNEQUAL = frozenset({"map", "variant"})
# Years and months beside days and seconds: how long that is depends on when it begins.
_UNORDERED = _UNEQUAL | {"interval"}
_COMPOSED = frozenset({"array", "map", "struct"})
_ATOMIC = frozenset(_FAMILIES) - _COMPOSED | {"string", "char", "varchar"}


_IN_JSON = frozenset(
    {
        *("string", "binary", "boolean", "date", "timestamp", "timestamp_ntz", "variant"),
        *("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
    }
)


def with_article(kind: DataType | str | None) -> str:
    """A type as a sentence needs it: ``an int``, ``a string``.

    Args:
        kind: The type.
    """
    return f"an {kind}" if str(kind)[:1].lower() in set("aeiou") else f"a {kind}"


def differ_for_certain(left: str | None, right: str | None) -> bool:
    """Whether two types can't become one, whatever `spark.sql.ansi.enabled` says: as in a union.

    Args:
        left: A type in DDL, or None when it isn't known.
        right: The other one.

    Returns:
        True when Spark certainly refuses; False where it takes them, or where that can't be told.
    """
    kinds = [None if text is None else type_of(text) for text in (left, right)]
    first, second = kinds
    if first is None or second is None:
        return False
    names = {first.name, second.name}
    if names & _COMPOSED:
        return len(names) > 1 and names <= _ATOMIC | _COMPOSED
    families = {_FAMILIES.get(name) or name for name in names}
    return len(families) > 1 and families <= {"number", "time", "boolean", "binary"}


def are_read_apart(left: str | None, right: str | None) -> bool:
    """Whether files with a column of one type aren't read as they are by who takes it for the other one.

    Args:
        left: A type in DDL, or None when it isn't known.
        right: The other one.

    Returns:
        False where that can't be told.
    """
    first, second = (None if text is None else type_of(text) for text in (left, right))
    return first is not None and second is not None and _clash(first, second)


def _clash(one: DataType, other: DataType) -> bool:
    names = {one.name, other.name}
    if len(names) > 1:
        return not names <= {"string", "char", "varchar"}
    if one.name == "decimal":
        return one.arguments != other.arguments
    had = {field.name.lower(): field.type for field in one.fields}
    both = [(had[field.name.lower()], field.type) for field in other.fields if field.name.lower() in had]
    return any(_clash(*pair) for pair in [*zip(one.parts, other.parts, strict=False), *both])


def without_equality(kind: str | None) -> bool:
    """Whether rows with a column of a type can't be told equal, as `distinct` has to: a map is in it.

    Args:
        kind: A type in DDL, or None when it isn't known.
    """
    possible = kind is not None and any(name in kind.lower() for name in _UNEQUAL)
    read = type_of(kind) if possible and kind is not None else None
    return read is not None and _holds(read, _UNEQUAL)


def without_order(kind: DataType | str | None) -> bool:
    """Whether values of a type can't be put in order, as `sort`, windows and `max` do: a map is in it.

    Args:
        kind: A type, or None when it isn't known.
    """
    read = type_of(kind) if isinstance(kind, str) else kind
    return read is not None and _holds(read, _UNORDERED)


def _holds(kind: DataType, names: frozenset[str]) -> bool:
    inner = [*kind.parts, *(made.type for made in kind.fields)]
    return kind.name in names or any(_holds(part, names) for part in inner)


def schema_of(columns: "Iterable[Column]") -> str:
    """The DDL of columns whose types are known."""
    return ", ".join(f"{quoted(column.name)} {column.type}" for column in columns)


def columns_of_json(schema: "Mapping[str, Any]") -> tuple[Column, ...]:
    """The columns of a schema in Spark's JSON, as Delta's log and the footers of Parquet files have it.

    Args:
        schema: The schema, taken apart. A column whose type isn't known here has none.
    """
    kinds = [(str(entry["name"]), _type_of_field(entry)) for entry in schema["fields"]]
    return tuple(Column(name, None if kind is None else str(kind)) for name, kind in kinds)


def type_of_json(kind: "str | Mapping[str, Any]") -> DataType | None:
    """A type in Spark's JSON; None where it isn't known here.

    Args:
        kind: The name of a simple type, or a mapping with the ``type`` of a composed one and its parts.
    """
    if isinstance(kind, str):
        simple = type_of(kind)
        return simple if simple is not None and simple.name in _IN_JSON else None
    if kind["type"] == "struct":
        fields = [(str(entry["name"]), _type_of_field(entry)) for entry in kind["fields"]]
        made = tuple(StructField(name, found) for name, found in fields if found is not None)
        return DataType("struct", fields=made) if len(made) == len(fields) else None
    keys = {"array": ("elementType",), "map": ("keyType", "valueType")}.get(kind["type"], ())
    parts = [type_of_json(kind[key]) for key in keys]
    found = tuple(part for part in parts if part is not None)
    return DataType(kind["type"], parts=found) if keys and len(found) == len(keys) else None


def _type_of_field(entry: "Mapping[str, Any]") -> DataType | None:
    """The type of a field; None where it has a collation, which stands beside it."""
    return None if "__COLLATIONS" in entry.get("metadata", {}) else type_of_json(entry["type"])
