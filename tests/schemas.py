"""JSON Schemas, with their library imported late: it compiles the grammar of addresses, two seconds in each worker."""

from __future__ import annotations

import json
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

    # A schema is looked through once, however many tests ask what it takes: that takes a second for all gems.
    text = json.dumps(schema, sort_keys=True)
    if text not in _looked_through:
        Draft202012Validator.check_schema(schema)
        _looked_through.add(text)
    return Draft202012Validator(schema)


_looked_through: set[str] = set()
