"""A pipeline written in Python: the same thing as a pipeline file, with the same checks."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from gem_bundle.diagnostics import NOWHERE, Diagnostic, Place
from gem_bundle.errors import PipelineError
from gem_bundle.pipeline.document import MAX_DEPTH, Document
from gem_bundle.pipeline.loader import Loaded, LoadOptions, load_values, read_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import FrameType
    from typing import Literal

    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle.pipeline.document import Path
    from gem_bundle.plugins import Registry
    from gem_bundle.run.report import Report
    from gem_bundle.semantics import OutputMode

    Mode = Literal["stream", "batch"]


class Pipeline:
    """A pipeline in Python, or one loaded from a file.

    ::

        from gem_bundle import Pipeline

        pipeline = (
            Pipeline("clicks")
            .source("ticks", "rate", {"rows_per_second": 10})
            .transform("even", "filter", "ticks", {"condition": "value % 2 = 0"})
            .target("screen", "console", "even", trigger={"processing_time": "10 seconds"})
        )
        for diagnostic in pipeline.check():
            print(diagnostic)
        pipeline.run()

    Names, options and references (``${name}``, ``${env:…}``, ``${secret:…}``) are those of a
    pipeline file, and so are the checks; diagnostics point at the line of the call. Nothing is
    checked before `check`, `dataframe` or `run`.

    Args:
        name: The pipeline's name; checkpoints and query names come from it.
        version: The pipeline's version, for its bundle.
        description: What it is for.
        mode: ``stream`` (the default) or ``batch``.
        parameters: Names and defaults, or declarations such as ``{"type": "string"}``.
        profiles: For each profile the values of parameters.
        spark: Spark session settings.
        checkpoints: The root of the checkpoints.
        health: When targets are unwell, as in the file: ``{"batch_time": "5 minutes"}``.
        restarts: How often queries are started again, as in the file.
        folder: What relative paths are relative to; by default the folder of the calling file.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str | None = None,
        description: str | None = None,
        mode: Mode | None = None,
        parameters: Mapping[str, Any] | None = None,
        profiles: Mapping[str, Mapping[str, Any]] | None = None,
        spark: Mapping[str, str | int | float | bool] | None = None,
        checkpoints: str | os.PathLike[str] | None = None,
        health: Mapping[str, Any] | None = None,
        restarts: Mapping[str, Any] | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        here = _caller()
        self._locator = _CallLocator(here)
        self._found: list[Diagnostic] = []
        self._file = ""
        # In an interactive session the calling "file" is `<stdin>`, and its folder the current one.
        self._folder = FilePath(FilePath(here.file).parent if folder is None else folder).absolute()
        given = {
            "pipeline": name,
            "version": version,
            "description": description,
            "mode": mode,
            "parameters": parameters,
            "profiles": profiles,
            "spark": spark,
            "checkpoints": checkpoints,
            "health": health,
            "restarts": restarts,
        }
        self._values: Any = {}
        for key, value in given.items():
            if value is not None:
                self._values[key] = self._plain(value, (key,))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Pipeline:
        """A pipeline file as a pipeline, to be checked, run, or extended with further nodes.

        What is wrong with the file is said by `check`, and raised by `dataframe` and `run`.

        Args:
            path: The file.
        """
        document = read_file(path)
        pipeline = cls.__new__(cls)
        pipeline._locator = _CallLocator(Place(document.file), document)
        pipeline._found = list(document.diagnostics)
        pipeline._file = document.file
        pipeline._folder = FilePath(document.file).absolute().parent
        pipeline._values = document.values
        return pipeline

    def source(
        self,
        id: str,  # noqa: A002 (the file's word for it)
        gem: str,
        options: Mapping[str, Any] | None = None,
        *,
        mode: Mode | None = None,
        was: str | Sequence[str] | None = None,
    ) -> Pipeline:
        """Add a node that reads from outside.

        Args:
            id: Its stable id.
            gem: The name of its gem.
            options: The gem's options.
            mode: ``batch`` for a static relation in a streaming pipeline.
            was: Its former id, or all of them, the newest first.
        """
        return self._add("sources", id, {"gem": gem, "mode": mode, "options": options, "was": was})

    def transform(
        self,
        id: str,  # noqa: A002 (the file's word for it)
        gem: str,
        inputs: str | Sequence[str] | Mapping[str, str],
        options: Mapping[str, Any] | None = None,
        *,
        was: str | Sequence[str] | None = None,
    ) -> Pipeline:
        """Add a node that turns rows into rows.

        Args:
            id: Its stable id.
            gem: The name of its gem.
            inputs: The id of its input, several ids, or several by the names that expressions use.
            options: The gem's options.
            was: Its former id, or all of them, the newest first.
        """
        key = "input" if isinstance(inputs, str) else "inputs"
        return self._add("transforms", id, {"gem": gem, key: inputs, "options": options, "was": was})

    def target(
        self,
        id: str,  # noqa: A002 (the file's word for it)
        gem: str,
        input: str,  # noqa: A002 (the file's word for it)
        options: Mapping[str, Any] | None = None,
        *,
        output_mode: OutputMode | None = None,
        trigger: Mapping[str, str | bool] | None = None,
        group: str | None = None,
        health: Mapping[str, Any] | None = None,
        restarts: Mapping[str, Any] | None = None,
        was: str | Sequence[str] | None = None,
    ) -> Pipeline:
        """Add a node that writes to outside.

        Args:
            id: Its stable id.
            gem: The name of its gem.
            input: The id of its input.
            options: The gem's options.
            output_mode: ``append`` (the default), ``update`` or ``complete``.
            trigger: When micro-batches run, as in the file: ``{"available_now": True}``.
            group: Targets of one group are written by one query, from the same micro-batches.
            health: When it is unwell, as in the file.
            restarts: How often its query is started again, as in the file.
            was: Its former id, or all of them, the newest first.
        """
        node = {
            "gem": gem,
            "input": input,
            "output_mode": output_mode,
            "trigger": trigger,
            "group": group,
            "health": health,
            "restarts": restarts,
            "options": options,
            "was": was,
        }
        return self._add("targets", id, node)

    def check(
        self,
        *,
        parameters: Mapping[str, Any] | None = None,
        profile: str | None = None,
        registry: Registry | None = None,
    ) -> list[Diagnostic]:
        """What is wrong with the pipeline; empty when it can run.

        No JVM is started, no network used, and secrets are not looked up.

        Args:
            parameters: Values for the pipeline's parameters.
            profile: The profile to use.
            registry: The gems to use; by default the installed ones.
        """
        from gem_bundle.check.checker import check_definition

        loaded = self._load(LoadOptions(parameters=parameters or {}, profile=profile))
        return check_definition(loaded, registry).diagnostics

    def _repr_html_(self) -> str:
        """The pipeline as a notebook shows it: its graph, its verdict, and what was found.

        As for `check`, no JVM is started and nothing outside is asked. Parameters have their defaults;
        one that has none is left open.
        """
        from gem_bundle.check.checker import check_definition
        from gem_bundle.describe.picture import picture

        options = LoadOptions(skip_env=True, require_parameters=False)
        checked = check_definition(self._load(options))
        return picture(checked.definition, checked.diagnostics, self._file)

    def dataframe(
        self,
        node: str,
        spark: SparkSession,
        *,
        parameters: Mapping[str, Any] | None = None,
        profile: str | None = None,
    ) -> DataFrame:
        """The DataFrame that flows out of a node, in a session of your own.

        Args:
            node: The node's id; ``id.output`` where it has several outputs.
            spark: The session. It must have the jars that the gems need.
            parameters: Values for the pipeline's parameters.
            profile: The profile to use.

        Raises:
            PipelineError: When the pipeline has errors, or the node can't be built.
        """
        from gem_bundle.run.api import node_dataframe, prepare
        from gem_bundle.run.options import RunOptions

        options = RunOptions(parameters=parameters or {}, profile=profile)
        plan, _ = prepare(self._load, options)
        return node_dataframe(plan, node, spark)

    def run(
        self,
        *,
        parameters: Mapping[str, Any] | None = None,
        profile: str | None = None,
        targets: Iterable[str] = (),
        available_now: bool = False,
        report: str | os.PathLike[str] | None = None,
        fresh: Iterable[str] = (),
        accept: Iterable[str] = (),
    ) -> Report:
        """Run the pipeline until its queries end, one fails, or the process is asked to stop.

        Args:
            parameters: Values for the pipeline's parameters.
            profile: The profile to use.
            targets: Run only these targets and what they need; by default all.
            available_now: Drain what is there and end, whatever the targets' triggers say.
            report: A file to write the summary to, as JSON.
            fresh: Targets that get new state, from where they ended; their old checkpoints are kept.
            accept: Changes since the last run that would stop this one and are taken on purpose: ``GB423``,
                or ``GB423:some_node`` for that of one node. They are what stands behind ``--accept`` in the
                message of a run that was stopped.

        Returns:
            What was done; ``ok`` is False when a query failed.

        Raises:
            PipelineError: When the pipeline can't be started; nothing has run then.
        """
        from gem_bundle.changes.accepting import acceptance
        from gem_bundle.run.api import run_pipeline
        from gem_bundle.run.options import RunOptions

        here = _caller()
        taken: list[tuple[str, str]] = []
        wrong: list[Diagnostic] = []
        for text in [accept] if isinstance(accept, str) else accept:
            try:
                taken.append(acceptance(str(text)))
            except ValueError as error:
                wrong.append(Diagnostic("GB408", "error", f"`accept` takes nothing: {error}", place=here))
        if wrong:
            raise PipelineError(wrong)

        options = RunOptions(
            parameters=parameters or {},
            profile=profile,
            targets=tuple(targets),
            available_now=available_now,
            report=None if report is None else FilePath(report),
            fresh=tuple(fresh),
            accept=tuple(taken),
        )
        return run_pipeline(self._load, options)

    def _load(self, options: LoadOptions) -> Loaded:
        if self._values is None:
            return Loaded(None, list(self._found))
        loaded = load_values(self._values, self._locator, self._folder, self._file, options)
        loaded.diagnostics[:0] = self._found
        return loaded

    def _add(self, section: str, name: str, node: dict[str, Any]) -> Pipeline:
        name = str(name)
        path: Path = (section, name)
        here = _caller()
        if not isinstance(self._values, dict):
            return self  # the file that was loaded is no pipeline; `check` says so
        nodes = self._values.setdefault(section, {})
        if not isinstance(nodes, dict):
            nodes = self._values[section] = {}
        if name in nodes:
            first = self._locator.place(path, key=True)
            message = f"the id `{name}` is used twice, first in line {first.line}"
            hint = "Ids are unique over sources, transforms and targets; rename one."
            self._found.append(Diagnostic("GB104", "error", message, name, path, here, hint))
            return self
        self._locator.calls[path] = here
        given = {key: value for key, value in node.items() if value is not None}
        nodes[name] = {key: self._plain(value, (*path, key)) for key, value in given.items()}
        return self

    def _plain(self, value: Any, path: Path, depth: int = 0) -> Any:
        """A copy of a value as a YAML parser would give it."""
        if depth > MAX_DEPTH:
            place = self._locator.place(path)
            message = f"this is nested deeper than {MAX_DEPTH} levels"
            found = Diagnostic("GB008", "error", message, None, path, place, "Use fewer levels.")
            self._found.append(found)
            return None
        if isinstance(value, Mapping):
            return {str(k): self._plain(item, path, depth + 1) for k, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._plain(item, path, depth + 1) for item in value]
        return os.fspath(value) if isinstance(value, os.PathLike) else value


class _CallLocator:
    """Finds the call that added a node; what was loaded from a file is found there."""

    def __init__(self, start: Place, document: Document | None = None) -> None:
        self.calls: dict[Path, Place] = {}
        self._start = start
        self._document = document

    def place(self, path: Sequence[str | int], *, key: bool = False) -> Place:
        """The place of the call, or of the value in the file; see `Locator.place`."""
        call = self.calls.get(tuple(path[:2]))
        if call is not None:
            return call
        return self._document.place(path, key=key) if self._document else self._start

    def text(self, path: Sequence[str | int]) -> str | None:
        """The scalar at a path as a file has it; what is written in Python has its value only."""
        if self._document is None or tuple(path[:2]) in self.calls:
            return None
        return self._document.text(path)


def _caller() -> Place:
    """Where the nearest code outside this module stands: its file, line and column."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    if frame is None:
        return NOWHERE
    positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    line, _, column, _ = positions
    return Place(frame.f_code.co_filename, line or frame.f_lineno, 0 if column is None else column + 1)
