"""JSON Schemas, with their library imported late: it compiles the grammar of addresses, two seconds in each worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


def validator(schema: Any) -> Draft202012Validator:
    """What a schema takes and refuses.

    Args:
        schema: The schema.

    Raises:
        SchemaError: jsonschema's, when it isn't one.
    """
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)
