"""The shape of a pipeline file, and what is left of it when it is read.

The pydantic models are the shape as users write it (and the source of its JSON Schema); the data classes
are what the checker and the runtime work on.
"""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator

from gem_bundle.types import Interval, interval_length

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from gem_bundle.gem import Kind, OutputMode, TriggerKind
    from gem_bundle.pipeline.document import Locator, Path
    from gem_bundle.pipeline.parameters import Parameter

SECTIONS: "dict[str, Kind]" = {"sources": "source", "transforms": "transform", "targets": "target"}
NAME_RULE = "Use a lower-case letter, then lower-case letters, digits and underscores."
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*[a-z0-9.+-]*")
ID_RULE = "Use a letter, then letters, digits and single underscores."


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


def _check_pace(text: str) -> str:
    if interval_length(text)[0]:
        raise ValueError("a trigger can't wait for months or years, whose length varies")
    return text


_Pace = Annotated[Interval, AfterValidator(_check_pace)]


class TriggerShape(_Shape):
    """When micro-batches run (guide: *Triggers*); exactly one kind."""

    available_now: Literal[True] | None = None
    processing_time: _Pace | None = None
    once: Literal[True] | None = None
    continuous: _Pace | None = None
    real_time: _Pace | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "TriggerShape":
        fields = type(self).model_fields
        if sum(getattr(self, name) is not None for name in fields) != 1:
            kinds = ", ".join(f"`{name}`" for name in fields)
            raise ValueError(f"a trigger is exactly one of {kinds}")
        return self


def _check_version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        raise ValueError("write a version such as `1.4.0`")
    return text


class SourceShape(_Shape):
    """A node that reads from outside."""

    gem: str
    mode: Literal["stream", "batch"] | None = None
    options: dict[str, Any] | None = None
    description: str = ""


class TransformShape(_Shape):
    """A node that turns rows into rows."""

    gem: str
    input: str | None = None
    inputs: list[str] | dict[str, str] | None = None
    options: dict[str, Any] | None = None
    description: str = ""

    @model_validator(mode="after")
    def _inputs(self) -> "TransformShape":
        _one_of_inputs(self.input, self.inputs)
        return self


class TargetShape(_Shape):
    """A node that writes to outside."""

    gem: str
    input: str
    output_mode: Literal["append", "update", "complete"] = "append"
    trigger: TriggerShape | None = None
    options: dict[str, Any] | None = None
    description: str = ""


class PipelineShape(_Shape):
    """The top of a pipeline file, without its nodes."""

    pipeline: str
    version: Annotated[str, AfterValidator(_check_version)] = "0.1.0"
    description: str = ""
    mode: Literal["stream", "batch"] = "stream"
    parameters: Any = None
    profiles: Any = None
    spark: dict[str, str | int | float | bool] | None = None
    checkpoints: str = "checkpoints"
    sources: Any = None
    transforms: Any = None
    targets: Any = None


def _one_of_inputs(one: str | None, several: list[str] | dict[str, str] | None) -> None:
    if (one is None) == (several is None):
        raise ValueError("give either `input` or `inputs`")
    if several is not None and not several:
        raise ValueError("`inputs` is empty")


NODE_SHAPES: dict[str, type[_Shape]] = {
    "sources": SourceShape,
    "transforms": TransformShape,
    "targets": TargetShape,
}


class Input(NamedTuple):
    """One input of a node.

    Args:
        node: The id of the node it comes from.
        output: The named output of that node, where it has several.
        name: How expressions of this node call it.
        path: Where it stands in the file.
    """

    node: str
    output: str | None
    name: str
    path: "Path"


class Trigger(NamedTuple):
    """When micro-batches run: the kind, and its interval where it has one."""

    kind: "TriggerKind" = "default"
    interval: str | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.interval}" if self.interval else self.kind


AS_FAST_AS_POSSIBLE = Trigger()


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a pipeline, references filled in.

    Args:
        id: Its stable identity.
        kind: ``source``, ``transform`` or ``target``.
        gem: The name of its gem.
        options: Its options as the file gives them.
        inputs: Its inputs, in order.
        path: Where it stands in the file.
        mode: For a source: read as a stream or as a static relation.
        output_mode: For a target.
        trigger: For a target.
    """

    id: str
    kind: "Kind"
    gem: str
    options: dict[str, Any]
    inputs: tuple[Input, ...]
    path: "Path"
    mode: Literal["stream", "batch"] = "stream"
    output_mode: "OutputMode" = "append"
    trigger: Trigger = AS_FAST_AS_POSSIBLE
    description: str = ""


@dataclass(frozen=True)
class Definition:
    """A pipeline as it was read: its shape is right; its graph and options are not checked yet.

    Args:
        name: The pipeline's name.
        version: The pipeline's version, for its bundle.
        mode: ``stream`` or ``batch``.
        folder: What relative paths are relative to.
        file: The name of the file as the user wrote it; empty for one written in Python.
        nodes: The nodes by id, in the order of the file.
        spark: Spark settings.
        checkpoints: The root of the checkpoints, absolute or a URL.
        locator: Where things stand.
        parameters: The declared parameters.
        values: The parameters' values of this run.
        secrets: The names of the secrets it refers to.
    """

    name: str
    version: str
    description: str
    mode: Literal["stream", "batch"]
    folder: "FilePath"
    file: str = field(compare=False)
    nodes: dict[str, Node]
    spark: dict[str, str]
    checkpoints: str
    locator: "Locator" = field(compare=False, repr=False)
    parameters: "dict[str, Parameter]"
    values: dict[str, Any]
    secrets: frozenset[str]

    def of_kind(self, kind: "Kind") -> list[Node]:
        """The nodes of a kind, in the order of the file."""
        return [node for node in self.nodes.values() if node.kind == kind]

    def checkpoint(self, target: str) -> str:
        """The checkpoint location of a target: ``<root>/<pipeline>/<target id>``."""
        return f"{self.checkpoints.rstrip('/')}/{self.name}/{target}"
