"""Which texts are no JSON, or don't fit a schema, and why: for `from_json` where it rejects."""

import operator
from functools import reduce
from typing import TYPE_CHECKING

from gem_bundle import reason
from gem_bundle.required import absent_fields, missing_field
from gem_bundle.schema import fields_of, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark.sql import Column

    from gem_bundle.schema import StructField

CORRUPT = "__gem_bundle_corrupt"
FITTED, REASONS = "fitted", "reasons"
_END = "__gem_bundle_end"
# What is about the schema, and not about how JSON is written.
_NOT_LEXICAL = frozenset({"mode", "columnNameOfCorruptRecord"})
_INFINITY = r'(?i)[:\[]\s*"?[-+]?inf(inity)?"?\s*[,}\]]'
# Without recursion, which a long comment would end.
_BEFORE = r"(?s)^(?:\s++|/\*.*?\*/|//[^\n]*+\n)*+"


def judged(
    text: "Column", schema: str, options: "Mapping[str, str]", *, names_once: bool = False
) -> "Column":
    """What each text is read as, and why it doesn't fit: an array of one struct, `FITTED` and `REASONS`.

    Spark's parser tells of values that don't fit. It doesn't tell of what it makes nulls of without a word:
    missing fields, nulls where none may be, texts that are no object, bytes that are no UTF-8, and whatever
    stands behind the first value.

    Args:
        text: The texts.
        schema: The fields, in DDL.
        options: Those of Spark's parser.
        names_once: An object that has a name twice doesn't fit.

    Returns:
        `FITTED` are the fields, with one more whose name is `CORRUPT`; `REASONS` is empty where they fit.
    """
    from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

    fields = fields_of(schema) or ()
    given = {key: value for key, value in options.items() if key not in _NOT_LEXICAL}
    marked = f"{schema}, {CORRUPT} string"
    parsed = F.from_json(text, marked, {**given, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT})
    between = F.concat(F.lit("["), text, F.lit(f'\n,"{_END}"]'))
    values = F.from_json(between, "array<string>", given or None)
    raw = F.from_json(text, ", ".join(f"{quoted(field.name)} string" for field in fields), given or None)

    def repeated() -> "Column":
        return _once(F.map_keys(F.from_json(text, "map<string,string>", given or None)), _repeated)

    def of(read: "Column") -> "Column":
        fitted, values = read.getField(FITTED), read.getField("values")
        alone = (F.size(values) == 2) & (F.element_at(values, -1) == _END)
        wrong = reduce(
            operator.or_,
            (_endless(fitted, text, field) for field in fields if field.type.name in {"double", "float"}),
            fitted.isNull() | fitted.getField(CORRUPT).isNotNull(),
        )
        misfits = F.when(wrong, _once(raw, lambda raw: _wrong(fitted, text, raw, fields))).otherwise(
            _missing(fitted, fields)
        )
        found = (
            F.when(text.isNull(), _one("no_text", "there is no text: it is null"))
            .when(~text.rlike(r"\S"), _one("no_text", "the text is empty"))
            .when(~F.is_valid_utf8(text), _one("not_utf8", "the text isn't UTF-8"))
            .when(~F.coalesce(alone, F.lit(False)), _one("not_json", "the text isn't one value of JSON"))
            .when(~text.rlike(_BEFORE + r"\{"), _one("not_an_object", "the text is JSON, and no object"))
            .otherwise(F.concat(repeated(), misfits) if names_once else misfits)
        )
        return F.struct(fitted.alias(FITTED), found.alias(REASONS))

    return F.transform(F.array(F.struct(parsed.alias(FITTED), values.alias("values"))), of)


def _once(column: "Column", made: "Callable[[Column], Column]") -> "Column":
    """What is made of a column, which is computed once however often it is used."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.element_at(F.transform(F.array(column), made), 1)


def _one(name: str, words: "str | Column") -> "Column":
    from pyspark.sql.functions import array

    return array(reason(name, words))


def _none() -> "Column":
    """No reason: Spark knows an empty array's type by what was in it."""
    from pyspark.sql.functions import filter as filtered
    from pyspark.sql.functions import lit

    return filtered(_one("", ""), lambda _: lit(False))


def _repeated(names: "Column") -> "Column":
    """The names of an object that are there more than once; nothing where none is."""
    from pyspark.sql import functions as F  # noqa: N812

    again = F.filter(F.array_distinct(names), lambda name: F.size(F.filter(names, lambda n: n == name)) > 1)
    told = F.array_join(F.transform(again, lambda name: F.concat(F.lit("`"), name, F.lit("`"))), ", ")
    words = F.concat(told, F.lit(" is there more than once"))
    one = F.transform(F.slice(again, 1, 1), lambda _: reason("duplicate_name", words))
    return F.coalesce(one, _none())


def _endless(fitted: "Column", text: "Column", field: "StructField") -> "Column":
    """Whether a number is too large for its type: Spark makes it infinite, as if the text had said so."""
    from pyspark.sql import functions as F  # noqa: N812

    found = F.abs(fitted.getField(field.name)) == float("inf")
    return F.coalesce(found & ~text.rlike(_INFINITY), F.lit(False))


def _wrong(fitted: "Column", text: "Column", raw: "Column", fields: "Iterable[StructField]") -> "Column":
    """The fields that are there and couldn't be read, and those that are required and aren't there."""
    from pyspark.sql import functions as F  # noqa: N812

    told = []
    for field in fields:
        wrong = raw.getField(field.name).isNotNull() & fitted.getField(field.name).isNull()
        if field.type.name in {"double", "float"}:
            wrong |= _endless(fitted, text, field)
        told.append(F.when(wrong, F.lit(f"`{field.name}` doesn't fit {field.type}")))
    said = F.concat_ws("; ", *told)
    words = F.when(said == "", F.lit("a value doesn't fit the schema")).otherwise(said)
    absent = [
        F.when(raw.getField(field.name).isNull(), missing_field(field.name))
        for field in fields
        if not field.nullable
    ]
    return F.array_compact(F.array(reason("wrong_type", words), *absent))


def _missing(fitted: "Column", fields: "Iterable[StructField]") -> "Column":
    """The required fields that are missing or null; none where all are there."""
    from pyspark.sql import functions as F  # noqa: N812

    found = [F.when(there, missing_field(path)) for path, there in absent_fields(fitted, fields)]
    return F.array_compact(F.array(*found)) if found else _none()
