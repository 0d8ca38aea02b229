"""What the checker's tests share: gems with every kind of option, and files with marked places."""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import model_validator

from gem_bundle import (
    Column,
    Facts,
    Field,
    Finding,
    Options,
    Source,
    SourceSemantics,
    Target,
    TargetSemantics,
    Transform,
)
from gem_bundle.check.checker import Checked, check_definition
from gem_bundle.pipeline.document import parse
from gem_bundle.pipeline.loader import Loaded, LoadOptions, load_values
from gem_bundle.plugins import GemEntry, Origin, Registry
from gem_bundle.types import (
    BrokerList,
    ColumnExpressions,
    DataPath,
    Duration,
    FunctionReference,
    Schema,
    SecretStr,
    StringList,
)

FILE = "p.yaml"
MARK = "▶"


class TopicOptions(Options):
    """Options of many types, one of them required, two of them exclusive."""

    topic: str = Field(description="Required.")
    brokers: BrokerList = Field(["localhost:9092"], description="A list with its own check.")
    limit: int | None = Field(None, gt=0, spark="maxOffsetsPerTrigger", description="A bounded number.")
    start: Literal["earliest", "latest"] = Field("latest", description="One of two words.")
    columns: StringList | None = Field(None, description="A list of names.")
    path: DataPath | None = Field(None, description="A path.")
    shape: Schema | None = Field(None, description="A schema.")
    every: Duration | None = Field(None, description="A length of time.")
    password: SecretStr | None = Field(None, min_length=3, description="A secret.")
    include: str | None = Field(None, description="Excludes `exclude`.")
    exclude: str | None = Field(None, description="Excludes `include`.")
    spark_options: dict[str, str] = Field({}, description="Raw options.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.include is not None and self.exclude is not None:
            raise ValueError("give either `include` or `exclude`")
        return self


class TopicSource(Source[TopicOptions]):
    """A stream, or a static relation."""

    def infer(self) -> Facts:
        """One column."""
        return Facts(columns=(Column("value", "string"),))


class TicksSource(Source):
    """A stream only."""

    semantics = SourceSemantics(batch=False)


class PagesSource(Source):
    """A static relation only."""

    semantics = SourceSemantics(streaming=False)


class Window(Options):
    """A nested mapping."""

    column: str = Field(description="Required.")
    duration: Duration = Field("1 minute", description="A length of time.")


class ShapeOptions(Options):
    """Nested options."""

    columns: ColumnExpressions | None = Field(None, description="A list or a mapping.")
    window: Window | None = Field(None, description="A mapping.")
    warn: bool = Field(False, description="Whether `check` has something to say about it.")


class ShapeTransform(Transform[ShapeOptions]):
    """One input."""

    def check(self, *inputs: Facts) -> list[Finding]:
        """A warning, when asked for."""
        if not self.options.warn:
            return []
        return [Finding("GB205", "this is said by the gem", option="warn", severity="warning")]


class PairTransform(Transform):
    """Two inputs."""

    inputs = (2, 2)


class MixTransform(Transform):
    """One input or more."""

    inputs = (1, None)


class SplitTransform(Transform):
    """Two outputs."""

    def outputs(self) -> tuple[str, ...]:
        """Their names."""
        return ("good", "bad")


class FunctionOptions(Options):
    """A function of the user's."""

    function: FunctionReference = Field(description="module:name")


class FunctionTransform(Transform[FunctionOptions]):
    """Names a function that only a run may import."""


class SinkTarget(Target):
    """Takes everything."""


class LogTarget(Target):
    """Append only."""

    semantics = TargetSemantics(output_modes=frozenset({"append"}))


class ReportTarget(Target):
    """Batch only."""

    semantics = TargetSemantics(streaming=False)


class ScreenTarget(Target):
    """Streams only."""

    semantics = TargetSemantics(batch=False)


GEMS = {
    ("source", "topic"): TopicSource,
    ("source", "ticks"): TicksSource,
    ("source", "pages"): PagesSource,
    ("transform", "shape"): ShapeTransform,
    ("transform", "pair"): PairTransform,
    ("transform", "mix"): MixTransform,
    ("transform", "split"): SplitTransform,
    ("transform", "function"): FunctionTransform,
    ("target", "sink"): SinkTarget,
    ("target", "log"): LogTarget,
    ("target", "report"): ReportTarget,
    ("target", "screen"): ScreenTarget,
    ("target", "topic"): SinkTarget,
}


def registry(**gems: type[Any]) -> Registry:
    """The gems above, and others of the caller by ``kind_name``."""
    origin = Origin("tests", "tests", "1.0")
    found = Registry()
    for (kind, name), gem in GEMS.items():
        found.add(GemEntry(kind, name, gem, origin))  # type: ignore[arg-type]
    for key, gem in gems.items():
        kind, _, name = key.partition("_")
        found.add(GemEntry(kind, name, gem, origin))  # type: ignore[arg-type]
    return found


def marked(text: str) -> tuple[str, list[tuple[int, int]]]:
    """A text without its marks, and the line and column of what stands behind each of them."""
    places: list[tuple[int, int]] = []
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        while MARK in line:
            places.append((number, line.index(MARK) + 1))
            line = line.replace(MARK, "", 1)  # noqa: PLW2901
        lines.append(line)
    return "\n".join(lines), places


def load(text: str, options: LoadOptions | None = None, folder: str = "/data") -> Loaded:
    """What the loader makes of a pipeline file's text."""
    document = parse(text, FILE)
    assert not document.diagnostics, document.diagnostics
    given = options or LoadOptions(environment={})
    return load_values(document.values, document, Path(folder), FILE, given)


def check(text: str, options: LoadOptions | None = None, **gems: type[Any]) -> Checked:
    """The verdict on a pipeline file's text, with the gems above."""
    return check_definition(load(text, options), registry(**gems))


def found(checked: Checked | Loaded) -> list[tuple[str, int, int]]:
    """The code, line and column of what was found, in the order of the file."""
    return sorted((d.code, d.line, d.column) for d in checked.diagnostics)
