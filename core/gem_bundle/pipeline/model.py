"""The shape of a pipeline file, and what is left of it when it is read.

The pydantic models are the shape as users write it (and the source of its JSON Schema); the data classes
are what the checker and the runtime work on.
"""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from gem_bundle.diagnostics import Diagnostic, listed_names
from gem_bundle.facts import REJECTED, output_key
from gem_bundle.pipeline.health import Health, HealthShape, Restarts, RestartsShape
from gem_bundle.types import Interval, OnlyTrue, interval_length

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path as FilePath

    from gem_bundle.pipeline.document import Locator, Path
    from gem_bundle.pipeline.parameters import Parameter
    from gem_bundle.semantics import Kind, OutputMode, TriggerKind

SECTIONS: "dict[str, Kind]" = {"sources": "source", "transforms": "transform", "targets": "target"}
EXTENSION_PREFIX = "x-"
MAX_NODES = 2_000
MAX_INPUTS = 5_000
NAME = re.compile(r"[a-z][a-z0-9_]*")
NAME_RULE = "Use a lower-case letter, then lower-case letters, digits and underscores."
VERSION = re.compile(r"[0-9][a-z0-9.+-]*")
ID = re.compile(r"[A-Za-z](?:_?[A-Za-z0-9])*_?")
ID_RULE = "Use a letter, then letters, digits and single underscores."
INPUT_NAME = re.compile(r"[A-Za-z_]\w*")
IN_GROUP = "."
"""Between the name of a group and that of a target, where a record is of one target of it."""
_PURPOSE = "What the node is for."
_WAS = (
    "A former id of the node, or all of them, the newest first: its checkpoint and its offsets stay its own."
)


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


def _check_pace(text: str) -> str:
    if interval_length(text)[0]:
        raise ValueError("a trigger can't wait for months or years, whose length varies")
    return text


_Pace = Annotated[Interval, AfterValidator(_check_pace)]


class TriggerShape(_Shape):
    """When micro-batches run (guide: *Triggers*); exactly one kind."""

    available_now: OnlyTrue | None = Field(None, description="Process what is there, and end.")
    processing_time: _Pace | None = Field(
        None, description="How long after the start of a micro-batch the next one starts."
    )
    once: OnlyTrue | None = Field(
        None, description="Process what is there in one micro-batch, and end; `available_now` is better."
    )
    continuous: _Pace | None = Field(
        None, description="Process row by row without micro-batches; how long it is between checkpoints."
    )
    real_time: _Pace | None = Field(
        None, description="Process rows as they come within long micro-batches; how long these are."
    )

    @model_validator(mode="after")
    def _one_kind(self) -> "TriggerShape":
        fields = type(self).model_fields
        if sum(getattr(self, name) is not None for name in fields) != 1:
            kinds = listed_names(fields)
            raise ValueError(f"a trigger is exactly one of {kinds}")
        return self


def _check_version(text: str) -> str:
    if not VERSION.fullmatch(text):
        raise ValueError("write a version such as `1.4.0`")
    return text


def _check_group(text: str) -> str:
    if not ID.fullmatch(text):
        raise ValueError("use a letter, then letters, digits and single underscores, as for an id")
    return text


class SourceShape(_Shape):
    """A node that reads from outside."""

    gem: str = Field(description="The gem that reads.")
    mode: Literal["stream", "batch"] | None = Field(
        None, description="Whether it is read as a stream or, once, as a static relation."
    )
    options: dict[str, Any] | None = Field(None, description="The gem's options.")
    was: str | list[str] | None = Field(None, description=_WAS)
    description: str = Field("", description=_PURPOSE)


class TransformShape(_Shape):
    """A node that turns rows into rows."""

    gem: str = Field(description="The gem that transforms.")
    input: str | None = Field(None, description="The id of the node it reads, or `id.output`.")
    inputs: list[str] | dict[str, str] | None = Field(
        None, description="The ids of several, also by the names that expressions call them by."
    )
    options: dict[str, Any] | None = Field(None, description="The gem's options.")
    was: str | list[str] | None = Field(None, description=_WAS)
    description: str = Field("", description=_PURPOSE)

    @model_validator(mode="after")
    def _inputs(self) -> "TransformShape":
        _one_of_inputs(self.input, self.inputs)
        return self


class TargetShape(_Shape):
    """A node that writes to outside."""

    gem: str = Field(description="The gem that writes.")
    input: str = Field(description="The id of the node it reads, or `id.output`.")
    output_mode: Literal["append", "update", "complete"] = Field(
        "append", description="What is written of a result: final rows, changed rows, or all of it."
    )
    trigger: TriggerShape | None = Field(
        None, description="When micro-batches run; by default one after the other."
    )
    group: Annotated[str, AfterValidator(_check_group)] | None = Field(
        None,
        description="Targets of one group are written by one query, from the same micro-batches; by default "
        "each has a query of its own.",
    )
    health: HealthShape | None = Field(
        None,
        description="When it is unwell, and what is done then; what it leaves out is as in the pipeline's.",
    )
    restarts: RestartsShape | None = Field(
        None,
        description="How often its query is started again when it failed for a passing reason; by default as "
        "the pipeline says.",
    )
    options: dict[str, Any] | None = Field(None, description="The gem's options.")
    was: str | list[str] | None = Field(None, description=_WAS)
    description: str = Field("", description=_PURPOSE)


class PipelineShape(_Shape):
    """The top of a pipeline file, without its nodes."""

    pipeline: str = Field(description=f"The pipeline's name. {NAME_RULE}")
    version: Annotated[str, AfterValidator(_check_version)] = Field(
        "0.1.0", description="The pipeline's version, for its bundle.", examples=["1.4.0"]
    )
    description: str = Field("", description="What the pipeline is for.")
    mode: Literal["stream", "batch"] = Field(
        "stream", description="Whether sources are read as streams or, once, as they are."
    )
    parameters: Any = Field(
        None, description="Values that `${name}` stands for, each by its default or as a declaration."
    )
    profiles: Any = Field(None, description="Sets of values for parameters, for `--profile`.")
    spark: dict[str, str | int | float | bool] | None = Field(
        None, description="Settings of the Spark session."
    )
    checkpoints: str = Field(
        "checkpoints", description="The folder of the checkpoints; a target's is `<pipeline>/<id>` in it."
    )
    health: HealthShape | None = Field(
        None, description="When a target is unwell, and what is done about it."
    )
    restarts: RestartsShape | None = Field(
        None,
        description="How often a query is started again when it failed for a passing reason.",
    )
    job: Any = Field(None, description="When and on what the pipeline runs on a cluster, for its bundle.")
    sources: Any = Field(None, description="The nodes that read, by id.")
    transforms: Any = Field(None, description="The nodes between, by id.")
    targets: Any = Field(None, description="The nodes that write, by id.")


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

    @property
    def key(self) -> str:
        """By which the facts of what comes in are found among a plan's."""
        return output_key(self.node, self.output)


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
        group: For a target: the group that it is in, or an empty text.
        joins: For a target that is in a group because it takes what a node rejects: the id of that node.
        was: Its former ids, the newest first.
        health: For a target: when it is unwell.
        restarts: For a target: how often its query is started again; None for never.
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
    was: tuple[str, ...] = ()
    group: str = ""
    joins: str = ""
    health: Health = field(default_factory=Health)
    restarts: Restarts | None = None

    @property
    def leads(self) -> bool:
        """Whether it is in a group only because others take what it rejects: the group has its checkpoint."""
        return self.group == self.identity

    @property
    def identity(self) -> str:
        """What checkpoints know it by: the id that it had first."""
        return self.was[-1] if self.was else self.id


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
        profile: The profile it was read with.
        sections: The sections that plugins read, references filled in: ``job``.
        variables: The values of the environment variables that it refers to, which may be secrets.
        within: What is in a file that the pipeline brings along, by its path relative to the pipeline file;
            None where it doesn't bring that. None where files lie in `folder`.
        modules: The folder with the Python modules that it names, where that isn't `folder`.
        project: The folder from which its project's settings are looked up, where that isn't `folder`.
        unset: What would be said of the environment variables that aren't set, where that isn't reported.
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
    profile: str | None = None
    sections: dict[str, Any] = field(default_factory=dict)
    variables: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    within: "Callable[[str], bytes | None] | None" = field(default=None, compare=False, repr=False)
    modules: "FilePath | None" = field(default=None, compare=False, repr=False)
    project: "FilePath | None" = field(default=None, compare=False, repr=False)
    unset: tuple[Diagnostic, ...] = field(default=(), compare=False, repr=False)

    @property
    def module_folder(self) -> "FilePath":
        """The folder with the Python modules that it names."""
        return self.modules or self.folder

    @property
    def settings_folder(self) -> "FilePath":
        """The folder from which its project's settings are looked up."""
        return self.project or self.folder

    def of_kind(self, kind: "Kind") -> list[Node]:
        """The nodes of a kind, in the order of the file."""
        return [node for node in self.nodes.values() if node.kind == kind]

    def with_rejected_taken(self) -> frozenset[str]:
        """The ids of the nodes whose rejected rows another node takes."""
        edges = (edge for node in self.nodes.values() for edge in node.inputs)
        return frozenset(edge.node for edge in edges if edge.output == REJECTED)

    def checkpoint(self, target: str) -> str:
        """The checkpoint location of a target: ``<root>/<pipeline>/<target id>``, its first one.

        Targets of a group have that of the group: ``<root>/<pipeline>/<group>``.
        """
        node = self.nodes.get(target)
        if node is not None and node.group and self.mode == "stream":
            return self._checkpoint(node.group)
        return self._checkpoint(node.identity if node else target)

    def record(self, target: str) -> str:
        """Beside which place the record of a target stands: its checkpoint, or its part of a group's."""
        node = self.nodes[target]
        place = self.checkpoint(target)
        is_within = node.group and not node.leads and self.mode == "stream"
        return f"{place}{IN_GROUP}{node.identity}" if is_within else place

    def _checkpoint(self, name: str) -> str:
        return f"{self.checkpoints.rstrip('/')}/{self.name}/{name}"
