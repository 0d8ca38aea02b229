"""From a pipeline file, or from the same thing in Python, to a `Definition`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from gem_bundle.diagnostics import Diagnostic, Place, suggest
from gem_bundle.pipeline.document import parse
from gem_bundle.pipeline.model import (
    ID_RULE,
    NAME_RULE,
    NODE_SHAPES,
    SECTIONS,
    Definition,
    Input,
    Node,
    PipelineShape,
    Trigger,
)
from gem_bundle.pipeline.parameters import Parameters, read_parameters
from gem_bundle.pipeline.problems import Problem, problems
from gem_bundle.pipeline.references import Resolver
from gem_bundle.types import is_remote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gem_bundle.pipeline.document import Locator, Path
    from gem_bundle.pipeline.secrets import SecretStore

ShapeT = TypeVar("ShapeT", bound=BaseModel)

_NAME = re.compile(r"[a-z][a-z0-9_]*$")
_ID = re.compile(r"[A-Za-z](?:_?[A-Za-z0-9])*_?$")
_EXTENSION_PREFIX = "x-"
_TOP = tuple(PipelineShape.model_fields)


@dataclass
class LoadOptions:
    """What one load is given from outside.

    Args:
        parameters: Values for the pipeline's parameters.
        profile: The profile to use.
        environment: Where ``${env:…}`` is looked up.
        secrets: Where ``${secret:…}`` is looked up; None leaves stand-ins, as a check does.
        skip_env: Don't report missing environment variables.
        require_parameters: Report parameters without a value.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    profile: str | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    secrets: SecretStore | None = None
    skip_env: bool = False
    require_parameters: bool = True


@dataclass
class Loaded:
    """A definition as far as one could be made, and what is wrong.

    Args:
        definition: What could be read, or None; with errors, it is good for finding more of them.
        diagnostics: What is wrong.
        broken: Ids of nodes that could not be read, so that nobody reports them as missing.
    """

    definition: Definition | None
    diagnostics: list[Diagnostic]
    broken: frozenset[str] = frozenset()


def load_file(path: str | os.PathLike[str], options: LoadOptions | None = None) -> Loaded:
    """Read a pipeline file; nothing in it is executed and nothing it names is opened.

    Args:
        path: The file.
        options: Parameters, profile, environment.
    """
    name = os.fspath(path)
    try:
        text = FilePath(name).read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        diagnostic = Diagnostic(
            "GB001", "error", f"the file can't be read: {reason}", place=Place(name), hint=_near(name)
        )
        return Loaded(None, [diagnostic])
    document = parse(text, name)
    if document.diagnostics:
        return Loaded(None, document.diagnostics)
    if document.values is None:
        diagnostic = Diagnostic("GB006", "error", "the file is empty", place=Place(name, 1, 1))
        return Loaded(None, [diagnostic])
    folder = FilePath(name).absolute().parent
    return load_values(document.values, document, folder, name, options or LoadOptions())


def _near(name: str) -> str:
    folder = FilePath(name).parent
    try:
        files = [entry.name for entry in folder.iterdir() if entry.suffix in {".yaml", ".yml"}]
    except OSError:
        return ""
    return suggest(FilePath(name).name, files, what="pipeline files there") if files else ""


def load_values(
    values: Any, locator: Locator, folder: FilePath, file: str, options: LoadOptions
) -> Loaded:
    """Make a definition of plain values as a YAML parser gives them.

    Args:
        values: The document.
        locator: Where its values stand.
        folder: What relative paths are relative to.
        file: The file's name for diagnostics; empty for a pipeline written in Python.
        options: Parameters, profile, environment.
    """
    if not isinstance(values, dict):
        place = locator.place(())
        message = "a pipeline file is a mapping with `pipeline`, `sources` and `targets`"
        return Loaded(None, [Diagnostic("GB005", "error", message, place=place)])
    return _Loader(locator, folder, file, options).load(values)


class _Loader:
    def __init__(self, locator: Locator, folder: FilePath, file: str, options: LoadOptions) -> None:
        self._locator = locator
        self._folder = folder
        self._file = file
        self._options = options
        self._diagnostics: list[Diagnostic] = []
        self._broken: set[str] = set()

    def load(self, raw: dict[str, Any]) -> Loaded:
        raw = {k: v for k, v in raw.items() if not k.startswith(_EXTENSION_PREFIX)}
        options = self._options
        parameters = read_parameters(
            raw.get("parameters"),
            raw.get("profiles"),
            self._locator,
            given=options.parameters,
            profile=options.profile,
            require=options.require_parameters,
        )
        self._diagnostics += parameters.diagnostics
        resolver = Resolver(
            parameters.values,
            self._locator,
            environment=options.environment,
            secrets=options.secrets,
            skip_env=options.skip_env,
            broken=parameters.broken,
        )
        # Values of parameters and profiles may refer to the environment, but not to one another.
        parameters.values.update(
            Resolver(
                {},
                self._locator,
                environment=options.environment,
                secrets=options.secrets,
                skip_env=options.skip_env,
                diagnostics=self._diagnostics,
                secret_names=resolver.secret_names,
            ).resolve(dict(parameters.values), ("parameters",))
        )
        values = {
            key: value if key in {"parameters", "profiles"} else resolver.resolve(value, (key,))
            for key, value in raw.items()
        }
        self._diagnostics += resolver.diagnostics
        shape = self._top(values)
        nodes = self._nodes(values)
        definition = self._definition(shape, nodes, parameters, resolver)
        return Loaded(definition, self._diagnostics, frozenset(self._broken))

    def _definition(
        self,
        shape: PipelineShape,
        nodes: dict[str, Node],
        parameters: Parameters,
        resolver: Resolver,
    ) -> Definition:
        root = shape.checkpoints
        if not is_remote(root) and not root.startswith("file:"):
            root = str(self._folder / root)
        if shape.mode == "batch":
            nodes = {name: self._as_batch(node) for name, node in nodes.items()}
        return Definition(
            name=shape.pipeline,
            version=shape.version,
            description=shape.description,
            mode=shape.mode,
            folder=self._folder,
            file=self._file,
            nodes=nodes,
            spark={key: _setting(value) for key, value in (shape.spark or {}).items()},
            checkpoints=root,
            locator=self._locator,
            parameters=parameters.declared,
            values=parameters.values,
            secrets=frozenset(resolver.secret_names),
        )

    def _as_batch(self, node: Node) -> Node:
        if node.kind != "source":
            return node
        if self._locator.text((*node.path, "mode")) == "stream":
            self._add(
                "GB005",
                f"`{node.id}`: a batch pipeline has no streams",
                (*node.path, "mode"),
                "Remove `mode: stream` here, or `mode: batch` at the top of the file.",
                node=node.id,
            )
        return replace(node, mode="batch")

    def _top(self, values: dict[str, Any]) -> PipelineShape:
        written = self._locator.text(("version",))
        if written is not None and not isinstance(values.get("version"), str | type(None)):
            # `version: 1.10` is a number to YAML; what the user wrote is what they mean.
            values = {**values, "version": written}
        shape = self._validated(PipelineShape, values, (), None)
        if shape is None:
            # The name is missing: the nodes are still worth checking.
            kept = {key: value for key, value in values.items() if key == "mode"}
            shape = self._validated(PipelineShape, {**kept, "pipeline": "unnamed"}, (), None, quiet=True)
            assert shape is not None
        if not _NAME.match(shape.pipeline):
            self._add("GB017", f"`{shape.pipeline}` can't be a pipeline's name", ("pipeline",), NAME_RULE)
        return shape

    def _nodes(self, values: dict[str, Any]) -> dict[str, Node]:
        nodes: dict[str, Node] = {}
        for section, kind in SECTIONS.items():
            entries = values.get(section)
            if entries is None:
                continue
            if not isinstance(entries, dict):
                self._add("GB005", f"`{section}` must be a mapping of ids to nodes", (section,))
                continue
            for name, entry in entries.items():
                path: Path = (section, name)
                if not _ID.match(name):
                    shown = name if len(name) < 60 else f"{name[:60]}…"
                    self._add("GB017", f"`{shown}` can't be the id of a {kind}", path, ID_RULE, key=True)
                if name in nodes:
                    first = self._locator.place(nodes[name].path, key=True)
                    self._add(
                        "GB104",
                        f"the id `{name}` is used twice, first in line {first.line}",
                        path,
                        "Ids are unique over sources, transforms and targets; rename one.",
                        key=True,
                    )
                    continue
                node = self._node(section, name, entry)
                if node is None:
                    self._broken.add(name)
                else:
                    nodes[name] = node
        return nodes

    def _node(self, section: str, name: str, entry: Any) -> Node | None:
        path: Path = (section, name)
        kind = SECTIONS[section]
        model = NODE_SHAPES[section]
        if not isinstance(entry, dict):
            self._add("GB005", f"the {kind} `{name}` must be a mapping with `gem`", path, node=name)
            return None
        shape: Any = self._validated(model, entry, path, name)
        if shape is None:
            return None
        inputs: tuple[Input, ...] = ()
        if kind == "transform":
            inputs = _inputs(shape.input if shape.inputs is None else shape.inputs, path)
        elif kind == "target":
            inputs = _inputs(shape.input, path)
        return Node(
            id=name,
            kind=kind,
            gem=shape.gem,
            options=shape.options or {},
            inputs=inputs,
            path=path,
            mode=getattr(shape, "mode", None) or "stream",
            output_mode=getattr(shape, "output_mode", "append"),
            trigger=_trigger(getattr(shape, "trigger", None)),
            description=shape.description,
        )

    def _validated(
        self, model: type[ShapeT], values: dict[str, Any], path: Path, node: str | None, *, quiet: bool = False
    ) -> ShapeT | None:
        """The values as the model sees them; after reporting, what is left without the wrong ones."""
        try:
            return model.model_validate(values)
        except ValidationError as error:
            found = problems(error, values, model.model_fields)
        if not quiet:
            for problem in found:
                self._report(problem, path, node)
        wrong = {problem.path[0] for problem in found if problem.path}
        if not wrong:
            return None
        kept = {key: value for key, value in values.items() if key not in wrong}
        return self._validated(model, kept, path, node, quiet=True)

    def _report(self, problem: Problem, base: Path, node: str | None = None) -> None:
        codes = {"unknown": "GB004", "missing": "GB006", "value": "GB005", "together": "GB005"}
        subject = f"`{node}`: " if node else ""
        path = (*base, *problem.path)
        self._add(
            codes[problem.kind],
            f"{subject}{problem.message}",
            path,
            problem.hint,
            key=problem.at_key or problem.kind in {"missing", "together"},
            node=node,
        )

    def _add(
        self,
        code: str,
        message: str,
        path: Path,
        hint: str = "",
        *,
        key: bool = False,
        node: str | None = None,
    ) -> None:
        place = self._locator.place(path, key=key)
        self._diagnostics.append(Diagnostic(code, "error", message, node, path, place, hint))


def _inputs(written: str | list[str] | dict[str, str], path: Path) -> tuple[Input, ...]:
    if isinstance(written, str):
        return (_input(written, None, (*path, "input")),)
    if isinstance(written, list):
        return tuple(
            _input(text, None, (*path, "inputs", index)) for index, text in enumerate(written)
        )
    return tuple(_input(text, name, (*path, "inputs", name)) for name, text in written.items())


def _input(text: str, name: str | None, path: Path) -> Input:
    node, dot, output = text.partition(".")
    return Input(node, output if dot else None, name or (output if dot else node), path)


def _trigger(shape: Any) -> Trigger:
    if shape is None:
        return Trigger()
    (kind,) = shape.model_fields_set
    value = getattr(shape, kind)
    return Trigger(kind, value if isinstance(value, str) else None)


def _setting(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
