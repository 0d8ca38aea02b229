"""The base of the closed models."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

Text = Annotated[str, StringConstraints(min_length=1)]


class Closed(BaseModel):
    """Fields that a tool takes: no others, and no value of another type.

    The tools ignore a field that they don't know, or only warn; a misspelt one must not get that far.
    """

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)
