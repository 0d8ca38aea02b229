"""Types of options in words: what `gem-bundle describe` and the reference call them."""

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, WithJsonSchema, create_model

from gem_bundle import Field, Options, types
from gem_bundle.describe import type_in_words


class Nested(BaseModel):
    """A mapping with keys of its own."""

    key: str


class Colour(enum.Enum):
    """A type that nobody thought of."""

    RED = "red"


def words(annotation: Any, **field: Any) -> str:
    model = create_model("M", __base__=Options, x=(annotation, Field(None, description="", **field)))
    info = model.model_fields["x"]
    return type_in_words(info.annotation, info.metadata)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (str, "text"),
        (int | None, "whole number"),
        (float, "number"),
        (bool | None, "true or false"),
        (Any, "any value"),
        (list[str], "list of texts"),
        (list[int] | None, "list of whole numbers"),
        (tuple[float, ...], "list of numbers"),
        (list[list[str]], "list of lists of texts"),
        (list, "list"),
        (dict, "mapping"),
        (dict[str, Any], "mapping of texts to any values"),
        (dict[str, dict[str, int]], "mapping of texts to mappings of texts to whole numbers"),
        (Nested | None, "mapping"),
        (list[Nested], "list of mappings"),
        (Literal["csv"], "`csv`"),
        (Literal["csv", "json", "orc"], "`csv`, `json` or `orc`"),
        (Literal[True] | str, "`true` or text"),
        (Literal["all"] | list[str] | None, "`all` or list of texts"),
        (str | list[str] | str, "text or list of texts"),
        (Literal["https", ""], "`https` or an empty text"),
        (dict[str, str | int | float | bool], "mapping of texts to single values"),
        (int | float, "number"),
        (list[dict[str, Any] | list[Any]], "list of mappings of texts to any values or lists of any values"),
        (Annotated[int, WithJsonSchema({"type": "string", "title": "moment"})] | None, "moment"),
        (Annotated[int, WithJsonSchema({"type": "string"})], "whole number"),
        (Colour, "Colour"),
        (types.Duration | None, "duration"),
        (types.Interval, "duration"),
        (types.Schema, "schema"),
        (types.Expression, "SQL expression"),
        (types.ExpressionList, "list of SQL expressions"),
        (types.ColumnExpressions, "list of SQL expressions or mapping of texts to SQL expressions"),
        (types.StringList | None, "list of texts"),
        (types.BrokerList, "list of `host:port`"),
        (types.DataPath, "path"),
        (list[types.DataPath], "list of paths"),
        (types.ByteSize | None, "size in bytes"),
        (types.TableName, "name of a table"),
        (types.Timestamp, "date or time"),
        (types.FunctionReference, "function as `module:name`"),
        (types.SecretStr | None, "secret text"),
        (Annotated[int, "anything"], "whole number"),
    ],
    # Not the type: in its text is where its functions are in memory, and two processes would name tests differently.
    ids=lambda value: value if isinstance(value, str) else "type",
)
def test_a_type_in_words(annotation: Any, expected: str) -> None:
    assert words(annotation) == expected


@pytest.mark.parametrize(
    ("annotation", "limits", "expected"),
    [
        (int, {"gt": 0}, "whole number, greater than 0"),
        (int | None, {"ge": 1, "le": 9}, "whole number, at least 1 and at most 9"),
        (float, {"lt": 1}, "number, less than 1"),
        (list[str], {"min_length": 1}, "list of texts, not empty"),
        (types.Duration, {"min_length": 1}, "duration, not empty"),
    ],
)
def test_limits_in_words(annotation: Any, limits: dict[str, Any], expected: str) -> None:
    assert words(annotation, **limits) == expected


def test_every_type_for_options_is_called_by_more_than_what_it_is_made_of() -> None:
    annotated = [name for name in types.__all__ if hasattr(getattr(types, name), "__metadata__")]
    assert {"Duration", "DataPath"} <= set(annotated)
    for name in annotated:
        assert words(getattr(types, name)) not in {"text", "whole number", "number"}, name
