"""From a file of declared tests to tests that can be run; all that is wrong with it is said at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from gem_bundle.diagnostics import NOWHERE, Diagnostic, Place, in_order
from gem_bundle.pipeline.loader import read_file
from gem_bundle.pipeline.model import EXTENSION_PREFIX
from gem_bundle.pipeline.problems import FILE_CODES, problems
from gem_bundle.testing.declared.model import (
    SUFFIX,
    DataShape,
    ExpectShape,
    FailsShape,
    ReplaceShape,
    StepShape,
    TestFileShape,
    TestShape,
)
from gem_bundle.testing.rows.compare import Expected
from gem_bundle.testing.running.outcome import is_output

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from gem_bundle.pipeline.document import Document, Path

_ShapeT = TypeVar("_ShapeT", bound=BaseModel)
_Common = TypeVar("_Common", TestFileShape, TestShape)


@dataclass(frozen=True)
class Data:
    """Rows that a test gives to a node.

    Args:
        shape: Where they come from.
        path: The keys that lead to them in the test file: to the list, where the rows stand in the file,
            else to the mapping that says where they are.
    """

    shape: DataShape
    path: Path = ()


@dataclass(frozen=True)
class Replacement:
    """What stands for a node.

    Args:
        shape: What it is.
        path: The keys that lead to it.
    """

    shape: ReplaceShape
    path: Path = ()

    @property
    def data(self) -> Data | None:
        """The rows that are there from the start, if it is rows."""
        shape = self.shape
        for key in ("rows", "file", "generate"):
            if (found := getattr(shape, key)) is not None:
                path = (*self.path, "rows") if key == "rows" else self.path
                return Data(DataShape.model_validate({key: found, "schema": shape.schema}), path)
        return None


@dataclass(frozen=True)
class Delivery:
    """What is expected of one target in one step, or of what a node rejects.

    Args:
        shape: What is expected.
        path: The keys that lead to it; to the list of rows, where there is only that.
        place: Where it stands: the target's key.
        subset: The rows name only some of the columns.
    """

    shape: ExpectShape
    path: Path = ()
    place: Place = NOWHERE
    subset: bool = False

    def expected(self, rows: list[Any] | None) -> Expected:
        """The expectation as it is compared.

        Args:
            rows: The expected rows, those of a file included; None where rows aren't expected.
        """
        shape = self.shape
        return Expected(
            rows=rows,
            ordered=shape.ordered,
            subset=self.subset,
            count=shape.count,
            schema=shape.schema,
        )


@dataclass(frozen=True)
class Failure:
    """A failure that is expected.

    Args:
        code: Its diagnostic code.
        message: A part of its message.
        place: Where the expectation stands.
    """

    code: str
    message: str | None = None
    place: Place = NOWHERE


@dataclass(frozen=True)
class DeclaredStep:
    """One step.

    Args:
        number: Its number, from 1.
        description: What it is about.
        restart: The queries are restarted before it.
        clock: The time that the clock is set to before it.
        add: The rows that arrive, by node.
        expect: What is expected, by target.
        watermark: The watermarks that are expected, by target; under None that of all.
        fails: The failure that it ends in.
        path: The keys that lead to it.
        place: Where it stands.
    """

    number: int
    description: str = ""
    restart: bool = False
    clock: str | None = None
    add: Mapping[str, Data] = field(default_factory=dict)
    expect: Mapping[str, Delivery] = field(default_factory=dict)
    watermark: Mapping[str | None, str] = field(default_factory=dict)
    fails: Failure | None = None
    path: Path = ()
    place: Place = NOWHERE


@dataclass(frozen=True)
class DeclaredTest:
    """One test, with what its file says for all of its tests.

    Args:
        name: What it is about: its key.
        file: The test file as it was named.
        pipeline: The pipeline file.
        document: The test file's YAML, for places.
        description: What it is about, at length.
        profile: The pipeline's profile.
        parameters: Values of its parameters.
        environment: Environment variables in addition to those of the process.
        secrets: Secrets by ``scope/key``.
        spark: Settings that win over the pipeline's.
        replace: What stands for nodes.
        targets: The targets to run beside those that the steps expect something of.
        steps: The steps.
        fails: The problem that keeps the pipeline from starting.
        path: The keys that lead to it.
        place: Where it stands.
    """

    name: str
    file: str
    pipeline: FilePath
    document: Document = field(repr=False, compare=False)
    description: str = ""
    profile: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    spark: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    replace: Mapping[str, Replacement] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    steps: tuple[DeclaredStep, ...] = ()
    fails: Failure | None = None
    path: Path = ()
    place: Place = NOWHERE

    @property
    def folder(self) -> FilePath:
        """What the paths of data files are relative to."""
        return FilePath(self.file).absolute().parent


@dataclass(frozen=True)
class TestFile:
    """A file of declared tests.

    Args:
        file: Its name as it was given.
        document: Its YAML.
        tests: The tests that can be run, in the order of the file.
        diagnostics: What is wrong with the file, in its order.
    """

    __test__ = False  # its name looks like a test's to pytest

    file: str
    document: Document = field(repr=False)
    tests: tuple[DeclaredTest, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


def load_tests(path: str | os.PathLike[str]) -> TestFile:
    """Read a file of declared tests. Neither the pipeline nor data files are opened.

    Args:
        path: The file.
    """
    document = read_file(path)
    if document.root is None and [found.code for found in document.diagnostics] == ["GB006"]:
        empty = document.diagnostics[0]
        hint = "Begin with `tests:`; `gem-bundle explain GB706` shows a test."
        document.diagnostics = [
            Diagnostic(empty.code, "error", "the file is empty", place=empty.place, hint=hint)
        ]
    return tests_in(document)


def tests_in(document: Document) -> TestFile:
    """The tests of a file that was read.

    Args:
        document: Its YAML; relative paths are relative to the file that it names.
    """
    reader = _Reader(document)
    tests = reader.read() if document.values is not None else ()
    return TestFile(document.file, document, tests, tuple(in_order([*document.diagnostics, *reader.found])))


def default_pipeline(file: FilePath) -> FilePath | None:
    """The pipeline of a test file that names none: ``orders.yaml`` for ``orders.test.yaml``."""
    for suffix in (SUFFIX, SUFFIX.replace("yaml", "yml")):
        if file.name.endswith(suffix) and file.name != suffix:
            return file.with_name(file.name.removesuffix(suffix) + "." + suffix.rpartition(".")[2])
    return None


class _Reader:
    """Makes tests of a document, and collects what is wrong with it."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._file = FilePath(document.file)
        self.found: list[Diagnostic] = []

    def read(self) -> tuple[DeclaredTest, ...]:
        values = self._document.values
        if not isinstance(values, dict):
            self._add("GB005", "a test file is a mapping with `tests`", (), "Begin with `tests:`.")
            return ()
        values = {key: value for key, value in values.items() if not key.startswith(EXTENSION_PREFIX)}
        shape = self._validated(TestFileShape, values, ())
        pipeline = self._pipeline(shape)
        tests: list[DeclaredTest] = []
        written = values.get("tests")
        for name, entry in written.items() if isinstance(written, dict) else ():
            found = self._test(name, entry, shape, pipeline)
            if found is not None:
                tests.append(found)
        return tuple(tests) if shape is not None and pipeline is not None else ()

    def _pipeline(self, shape: TestFileShape | None) -> FilePath | None:
        """The pipeline file."""
        folder = self._file.parent
        if shape is None or shape.pipeline is None:
            if isinstance(self._document.values, dict) and "pipeline" in self._document.values:
                return None  # what is wrong with it is reported
            found = default_pipeline(self._file)
            if found is None:
                hint = f"Write `pipeline: orders.yaml`, or call the test file `orders{SUFFIX}`."
                self._add("GB701", "the file doesn't say which pipeline it tests", (), hint)
            elif not found.is_file():
                hint = f"Name it: `pipeline: {found.name}` stands for the file beside the test."
                self._add("GB701", f"there is no pipeline `{found.name}` beside the test", (), hint)
                return None
            return found
        found = folder / shape.pipeline
        if not found.is_file():
            message = f"there is no pipeline file `{shape.pipeline}`"
            self._add("GB701", message, ("pipeline",), "Its path is relative to the test file.")
            return None
        return found

    def _test(
        self, name: str, entry: Any, file: TestFileShape | None, pipeline: FilePath | None
    ) -> DeclaredTest | None:
        path: Path = ("tests", name)
        if not isinstance(entry, dict):
            self._add("GB005", f"the test `{name}` must be a mapping with `steps`", path, "Write `steps:`.")
            return None
        shape = self._validated(TestShape, entry, path)
        if shape is None or file is None:
            return None
        steps = tuple(self._step(n, step, (*path, "steps", n)) for n, step in enumerate(shape.steps or ()))
        if shape.fails is None and not any(s.expect or s.watermark or s.fails for s in steps):
            hint = "Give a step `expect`, `watermark` or `fails`."
            self._add("GB706", f"the test `{name}` expects nothing", path, hint, key=True)
            return None
        return DeclaredTest(
            name=name,
            file=self._document.file,
            pipeline=pipeline or self._file,
            document=self._document,
            description=shape.description,
            profile=shape.profile or file.profile,
            parameters=_merged(file.parameters, shape.parameters),
            environment=_merged(file.environment, shape.environment),
            secrets=_merged(file.secrets, shape.secrets),
            spark=_merged(file.spark, shape.spark),
            replace={
                **_replacements(file, ("replace",)),
                **_replacements(shape, (*path, "replace")),
            },
            targets=tuple(shape.targets or ()),
            steps=steps,
            fails=self._failure(shape.fails, path),
            path=path,
            place=self._document.place(path, key=True),
        )

    def _step(self, index: int, shape: StepShape, path: Path) -> DeclaredStep:
        return DeclaredStep(
            number=index + 1,
            description=shape.description,
            restart=shape.restart is not None,
            clock=shape.clock,
            add={name: _data(rows, (*path, "add", name)) for name, rows in (shape.add or {}).items()},
            expect={
                name: self._delivery(rows, (*path, "expect", name))
                for name, rows in (shape.expect or {}).items()
            },
            watermark=_by_target(shape.watermark),
            fails=self._failure(shape.fails, path),
            path=path,
            place=self._document.place(path),
        )

    def _delivery(self, written: Any, path: Path) -> Delivery:
        shape = ExpectShape(rows=written) if isinstance(written, list) else written
        # When a row was rejected no test knows.
        subset = shape.columns is not None or is_output(str(path[-1]))
        return Delivery(shape, path, self._document.place(path, key=True), subset)

    def _failure(self, shape: str | FailsShape | None, path: Path) -> Failure | None:
        if shape is None:
            return None
        place = self._document.place((*path, "fails"), key=True)
        if isinstance(shape, str):
            return Failure(shape, None, place)
        return Failure(shape.code, shape.message, place)

    def _validated(self, model: type[_ShapeT], values: dict[str, Any], path: Path) -> _ShapeT | None:
        try:
            return model.model_validate(values)
        except ValidationError as error:
            subject = f"`{path[-1]}`: " if path else ""
            for problem in problems(error, values, model):
                if problem.kind != "ignored":
                    there = (*path, *problem.path)
                    place = problem.place(self._document, there)
                    message = f"{subject}{problem.message}"
                    code = FILE_CODES[problem.kind]
                    self.found.append(Diagnostic(code, "error", message, None, there, place, problem.hint))
            return None

    def _add(self, code: str, message: str, path: Path, hint: str = "", *, key: bool = False) -> None:
        place = self._document.place(path, key=key)
        self.found.append(Diagnostic(code, "error", message, None, path, place, hint))


def _data(written: Any, path: Path) -> Data:
    if isinstance(written, list):
        return Data(DataShape(rows=written), path)
    return Data(written, (*path, "rows") if written.rows is not None else path)


def _by_target(written: str | dict[str, str] | None) -> dict[str | None, str]:
    if isinstance(written, str):
        return {None: written}
    return dict((written or {}).items())


def _replacements(shape: _Common, path: Path) -> dict[str, Replacement]:
    return {name: Replacement(found, (*path, name)) for name, found in (shape.replace or {}).items()}


def _merged(*layers: Mapping[str, Any] | None) -> dict[str, Any]:
    return {key: value for layer in layers for key, value in (layer or {}).items()}
