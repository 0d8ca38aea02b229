"""The shape of a file of declared tests, ``orders.test.yaml``, as users write it.

What it means is made of it by `gem_bundle.testing.declared.load`.
"""

import re
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from gem_bundle.types import OnlyTrue, Schema, Timestamp

SUFFIX = ".test.yaml"
"""How the name of a test file ends; what stands before it names the pipeline file beside it."""

_CODE = re.compile(r"[A-Z]+\d+")
_SECRET = re.compile(r"[^\s/]+/[^\s/]+")
_DDL = "The columns as DDL (`page string, at timestamp`), or as a mapping of names to types."


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    if not TYPE_CHECKING:

        class _Absent:
            # A field called `schema` would hide a method of pydantic's, which warns of that.
            def __get__(self, instance: object, owner: type) -> Any:
                raise AttributeError("schema")

        schema: ClassVar = _Absent()


def _check_code(code: str) -> str:
    if not _CODE.fullmatch(code):
        raise ValueError("write a diagnostic code such as `GB507`")
    return code


def _check_secrets(secrets: dict[str, str]) -> dict[str, str]:
    for name in secrets:
        if not _SECRET.fullmatch(name):
            raise ValueError(f"`{name}` names no secret; write `scope/key`")
    return secrets


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


CodeText = Annotated[str, AfterValidator(_check_code)]
Text = Annotated[str, BeforeValidator(_text, json_schema_input_type=str | int | float | bool)]
Row = dict[str, Any] | list[Any]


class GenerateShape(_Shape):
    """Rows that are made up: the same for the same seed, whatever the machine."""

    rows: int = Field(ge=0, le=1_000_000, description="How many rows.")
    seed: int = Field(0, description="Another seed gives other rows.")
    columns: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="How the values of a column are made, where its type doesn't say enough.",
    )


class DataShape(_Shape):
    """Rows from one place: written here, in a file beside the test, or made up."""

    rows: list[Row] | None = Field(None, description="The rows.")
    file: str | None = Field(None, description="A CSV or JSON file, relative to the test file.")
    generate: GenerateShape | None = Field(None, description="Rows that a seeded generator makes up.")
    schema: Schema | None = Field(  # type: ignore[assignment]
        None, description=f"{_DDL} Needed where the pipeline doesn't say them."
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if sum(found is not None for found in (self.rows, self.file, self.generate)) != 1:
            raise ValueError("give exactly one of `rows`, `file` and `generate`")
        return self


class ReplaceShape(_Shape):
    """What stands for a node: rows, another gem, or nothing but its columns."""

    rows: list[Row] | None = Field(
        None, description="Rows that are there from the start; of a stream, they come with the first step."
    )
    file: str | None = Field(None, description="The same, from a CSV or JSON file.")
    generate: GenerateShape | None = Field(None, description="The same, made up.")
    schema: Schema | None = Field(  # type: ignore[assignment]
        None, description=f"{_DDL} Needed where the pipeline doesn't say them."
    )
    gem: str | None = Field(None, description="Another gem in the place of the node's own.")
    options: dict[str, Any] | None = Field(None, description="The options of that gem.")
    real: OnlyTrue | None = Field(
        None,
        description="Leave a source as it is: it reads what it always reads, a file beside the pipeline say.",
    )

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        data = [name for name in ("rows", "file", "generate") if getattr(self, name) is not None]
        if len(data) > 1:
            raise ValueError("give one of `rows`, `file` and `generate`")
        if self.gem is None and self.options is not None:
            raise ValueError("`options` go with `gem`")
        chosen = bool(data or self.schema is not None) + (self.gem is not None) + (self.real is not None)
        if chosen != 1:
            raise ValueError("give rows, a `schema`, a `gem`, or `real: true`")
        return self


class ExpectShape(_Shape):
    """What a target gets in a step, or in complete mode its whole result."""

    rows: list[Row] | None = Field(None, description="The rows.")
    file: str | None = Field(None, description="The rows, in a CSV or JSON file beside the test.")
    ordered: bool = Field(False, description="Whether they come in this order.")
    columns: Literal["subset"] | None = Field(
        None,
        description="The rows name only some of the columns, and the others don't matter. Rejected rows "
        "always do.",
    )
    count: int | None = Field(None, ge=0, description="How many rows there are.")
    schema: Schema | None = Field(None, description=_DDL)  # type: ignore[assignment]

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.rows is not None and self.file is not None:
            raise ValueError("give either `rows` or `file`")
        there = self.rows is not None or self.file is not None
        if not there and self.count is None and self.schema is None:
            raise ValueError("say what is expected: `rows`, `file`, `count` or `schema`")
        if not there and (self.ordered or self.columns is not None):
            raise ValueError("`ordered` and `columns` are about `rows` or a `file`")
        return self


class FailsShape(_Shape):
    """A failure that is expected."""

    code: CodeText = Field(description="The diagnostic code it fails with.")
    message: str | None = Field(None, description="A part of its message.")


class StepShape(_Shape):
    """One step: rows that arrive, and what is expected once they are processed."""

    description: str = Field("", description="What the step is about.")
    restart: OnlyTrue | None = Field(
        None, description="First stop the queries and start them again from their checkpoints."
    )
    clock: Timestamp | None = Field(
        None,
        description="The time from this step on, of queries with a processor that goes by the clock: "
        "`stateful` with `time: processing`. It never goes back, and begins with 1970.",
    )
    add: dict[str, list[Row] | DataShape] | None = Field(
        None, description="The rows that arrive, by the ids of sources; those of one step in one micro-batch."
    )
    expect: dict[str, list[Row] | ExpectShape] | None = Field(
        None, description="What the targets get, by their ids, and what nodes reject, as `id.rejected`."
    )
    watermark: Timestamp | dict[str, Timestamp] | None = Field(
        None, description="The event-time watermark after the step, of all targets or by their ids."
    )
    fails: CodeText | FailsShape | None = Field(None, description="The failure that the step ends in.")

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set - {"description"}:
            raise ValueError("a step without anything in it does nothing")
        if self.fails is not None and (self.expect is not None or self.watermark is not None):
            raise ValueError("a step that fails delivers nothing; remove `fails`, or what is expected")
        return self


class _Common(_Shape):
    profile: str | None = Field(None, description="The profile of the pipeline.")
    parameters: dict[str, Any] | None = Field(None, description="Values of the pipeline's parameters.")
    environment: dict[str, Text] | None = Field(
        None, description="Values of environment variables that the pipeline refers to."
    )
    secrets: Annotated[dict[str, Text], AfterValidator(_check_secrets)] | None = Field(
        None, description="Values of secrets, by `scope/key`. Those that aren't given need not exist."
    )
    spark: dict[str, str | int | float | bool] | None = Field(
        None, description="Settings of the Spark session that win over the pipeline's."
    )
    replace: dict[str, ReplaceShape] | None = Field(None, description="What stands for nodes, by their ids.")


class TestShape(_Common):
    """One test. What it says wins over what the file says for all of its tests."""

    __test__ = False  # its name looks like a test's to pytest

    description: str = Field("", description="What the test is about.")
    targets: list[str] | None = Field(
        None,
        description="Targets to run beside those that the steps expect something of.",
    )
    steps: list[StepShape] | None = Field(None, description="The steps, in order.")
    fails: CodeText | FailsShape | None = Field(
        None, description="The problem that keeps the pipeline from starting."
    )

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.steps and self.fails is None:
            raise ValueError("a test needs `steps`, or `fails` for a pipeline that can't start")
        if self.steps and self.fails is not None:
            raise ValueError(
                "a pipeline that can't start takes no steps; put `fails` into the step that fails"
            )
        return self


class TestFileShape(_Common):
    """The top of a test file."""

    __test__ = False

    pipeline: str | None = Field(
        None, description="The pipeline file; by default the one beside it, without `.test`."
    )
    tests: dict[str, Any] = Field(min_length=1, description="The tests, by what they are about.")
