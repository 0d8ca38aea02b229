"""From a pipeline file, or from the same thing in Python, to a `Definition`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from gem_bundle.diagnostics import Diagnostic, suggest
from gem_bundle.hookspecs import OF_PLUGINS
from gem_bundle.pipeline.document import MAX_BYTES, Document, Unknown, parse
from gem_bundle.pipeline.groups import with_rejected
from gem_bundle.pipeline.health import Health, health_of, restarts_of
from gem_bundle.pipeline.model import (
    EXTENSION_PREFIX,
    ID,
    ID_RULE,
    INPUT_NAME,
    MAX_INPUTS,
    MAX_NODES,
    NAME,
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
from gem_bundle.pipeline.problems import FILE_CODES, Problem, problems
from gem_bundle.pipeline.references import Resolver
from gem_bundle.pipeline.secrets import unmarked
from gem_bundle.types import is_remote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gem_bundle.pipeline.document import Locator, Path
    from gem_bundle.pipeline.health import HealthShape, RestartsShape
    from gem_bundle.pipeline.secrets import SecretStore

ShapeT = TypeVar("ShapeT", bound=BaseModel)


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
    return load_document(read_file(path), options)


def load_document(
    document: Document, options: LoadOptions | None = None, folder: FilePath | None = None
) -> Loaded:
    """Make a definition of a pipeline file's YAML.

    Args:
        document: The file as it was read; it can be used again with other options.
        options: Parameters, profile, environment.
        folder: What relative paths are relative to; by default the file's own.
    """
    if document.values is None:
        return Loaded(None, list(document.diagnostics))
    folder = folder or FilePath(document.file).absolute().parent
    loaded = load_values(document.values, document, folder, document.file, options or LoadOptions())
    loaded.diagnostics[:0] = document.diagnostics
    return loaded


def read_file(path: str | os.PathLike[str]) -> Document:
    """Read the YAML of a pipeline file, whatever it means.

    Args:
        path: The file.

    Returns:
        The document; its ``values`` are None, and its diagnostics say why, where it can't be used.
    """
    name = os.fspath(path)
    try:
        with FilePath(name).open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        document = Document(name)
        reason = getattr(error, "strerror", None) or str(error)
        document.report("GB001", f"the file can't be read: {reason}", 0, 0, _near(name))
        return document
    document = parse(text, name)
    if document.values is None and not document.diagnostics:
        hint = "Begin with `pipeline: name`; `gem-bundle explain GB006` shows a whole file."
        document.report("GB006", "the file is empty", 1, 1, hint)
    return document


def _near(name: str) -> str:
    folder = FilePath(name).parent
    try:
        files = [entry.name for entry in folder.iterdir() if entry.suffix in {".yaml", ".yml"}]
    except (OSError, ValueError):
        return ""
    return suggest(FilePath(name).name, files, what="pipeline files there") if files else ""


def load_values(values: Any, locator: Locator, folder: FilePath, file: str, options: LoadOptions) -> Loaded:
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
        hint = "Begin with `pipeline: name`."
        return Loaded(None, [Diagnostic("GB005", "error", message, place=place, hint=hint)])
    return _Loader(locator, folder, file, options).load(values)


class _Loader:
    def __init__(self, locator: Locator, folder: FilePath, file: str, options: LoadOptions) -> None:
        self._locator = locator
        self._folder = folder
        self._file = file
        self._options = options
        self._diagnostics: list[Diagnostic] = []
        self._broken: set[str] = set()
        self._mode = "stream"
        self._health: HealthShape | None = None
        self._restarts: RestartsShape | None = None

    def load(self, raw: dict[str, Any]) -> Loaded:
        raw = {k: v for k, v in raw.items() if not k.startswith(EXTENSION_PREFIX)}
        options = self._options
        outside = self._resolver(None)
        parameters = read_parameters(
            raw.get("parameters"),
            raw.get("profiles"),
            self._locator,
            resolve=outside.resolve,
            given=options.parameters,
            profile=options.profile,
            require=options.require_parameters,
        )
        self._diagnostics += parameters.diagnostics
        resolver = self._resolver(parameters.values, parameters.broken)
        values = {
            key: value if key in {"parameters", "profiles"} else resolver.resolve(value, (key,))
            for key, value in raw.items()
        }
        self._diagnostics += outside.diagnostics
        self._diagnostics += resolver.diagnostics
        # Only what goes into options has to be known from other texts.
        values = {key: value if key in SECTIONS else unmarked(value) for key, value in values.items()}
        shape = self._top(raw, values)
        self._mode = shape.mode
        self._health, self._restarts = shape.health, shape.restarts
        if self._is_too_large(values):
            return Loaded(None, self._diagnostics)
        nodes = self._nodes(values)
        secrets = frozenset(outside.secret_names | resolver.secret_names)
        variables = frozenset(outside.variables | resolver.variables)
        definition = self._definition(shape, nodes, parameters, secrets, variables)
        definition = replace(definition, unset=(*outside.unset, *resolver.unset))
        return Loaded(definition, self._diagnostics, frozenset(self._broken))

    def _resolver(
        self, parameters: Mapping[str, Any] | None, broken: frozenset[str] = frozenset()
    ) -> Resolver:
        return Resolver(
            parameters,
            self._locator,
            environment=self._options.environment,
            secrets=self._options.secrets,
            skip_env=self._options.skip_env,
            broken=broken,
        )

    def _definition(
        self,
        shape: PipelineShape,
        nodes: dict[str, Node],
        parameters: Parameters,
        secrets: frozenset[str],
        variables: frozenset[str],
    ) -> Definition:
        root = shape.checkpoints
        if not is_remote(root) and not root.startswith("file:"):
            root = str(self._folder / root)
        return Definition(
            name=shape.pipeline,
            version=shape.version,
            description=shape.description,
            mode=shape.mode,
            folder=self._folder,
            file=self._file,
            nodes=nodes,
            spark={key: self._setting(key, value) for key, value in (shape.spark or {}).items()},
            checkpoints=root,
            locator=self._locator,
            parameters=parameters.declared,
            values=unmarked(parameters.values),
            secrets=secrets,
            profile=self._options.profile,
            sections={name: getattr(shape, name) for name in OF_PLUGINS if getattr(shape, name) is not None},
            variables=variables,
        )

    def _setting(self, key: str, value: object) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        written = self._locator.text(("spark", key))
        # `0.10` and `1e3` are numbers to YAML; Spark gets what the user wrote.
        return str(value) if written is None or "${" in written else written

    def _top(self, raw: dict[str, Any], values: dict[str, Any]) -> PipelineShape:
        written = self._locator.text(("version",))
        if written is not None and isinstance(raw.get("version"), int | float):
            # `version: 1.10` is a number to YAML; what the user wrote is what they mean.
            values = {**values, "version": written}
        shape = self._validated(PipelineShape, values, (), None)
        if shape is None:
            # The name is missing: the nodes are still worth checking.
            kept = {key: value for key, value in values.items() if key in PipelineShape.model_fields}
            kept["pipeline"] = "unnamed"
            shape = self._validated(PipelineShape, kept, (), None, quiet=True)
            assert shape is not None
        name = shape.pipeline
        if not isinstance(values.get("pipeline"), Unknown) and not NAME.fullmatch(name):
            message = f"`{_short(name)}` can't be a pipeline's name"
            self._add("GB017", message, ("pipeline",), NAME_RULE)
        return shape

    def _is_too_large(self, values: dict[str, Any]) -> bool:
        """Whether there is more than a check could go through while somebody waits for it."""
        nodes = inputs = 0
        for section in SECTIONS:
            entries = values.get(section)
            if not isinstance(entries, dict):
                continue
            nodes += len(entries)
            for entry in entries.values():
                several = entry.get("inputs") if isinstance(entry, dict) else None
                inputs += len(several) if isinstance(several, dict | list) else 1
            for count, most, what in ((nodes, MAX_NODES, "nodes"), (inputs, MAX_INPUTS, "inputs of nodes")):
                if count > most:
                    message = f"the pipeline has more than {most:,} {what}"
                    self._add("GB008", message, (section,), "Make several pipelines of it.", key=True)
                    return True
        return False

    def _nodes(self, values: dict[str, Any]) -> dict[str, Node]:
        nodes: dict[str, Node] = {}
        first: dict[str, Path] = {}
        for section in SECTIONS:
            entries = values.get(section)
            if entries is None or isinstance(entries, Unknown):
                continue
            if not isinstance(entries, dict):
                message = f"`{section}` must be a mapping of ids to nodes"
                self._add("GB005", message, (section,), f"Write `{section}: {{id: {{gem: …}}}}`.")
                continue
            for name, entry in entries.items():
                path: Path = (section, name)
                if name in first:
                    line = self._locator.place(first[name], key=True).line
                    message = f"the id `{name}` is used twice, first in line {line}"
                    hint = "Ids are unique over sources, transforms and targets; rename one."
                    self._add("GB104", message, path, hint, key=True, node=name)
                    continue
                first[name] = path
                node = self._node(section, name, entry)
                if node is None:
                    self._broken.add(name)
                else:
                    nodes[name] = node
        self._check_identities(nodes, first)
        self._check_groups(nodes)
        return with_rejected(nodes)

    def _check_groups(self, nodes: dict[str, Node]) -> None:
        """No group has the checkpoint of a target."""
        targets = {node.identity.lower(): node.id for node in nodes.values() if node.kind == "target"}
        for node in nodes.values():
            owner = targets.get(node.group.lower()) if node.group else None
            if owner is not None:
                message = f"`{node.id}`: the group `{node.group}` would have the checkpoint of `{owner}`"
                hint = "Give the group a name that no target has, or had."
                self._add("GB104", message, (*node.path, "group"), hint, node=node.id)

    def _check_identities(self, nodes: dict[str, Node], first: Mapping[str, Path]) -> None:
        """No two nodes are, or were, the same one."""
        owners: dict[str, str] = {name: name for name in first if name not in nodes or not nodes[name].was}
        for node in nodes.values():
            path = (*node.path, "was")
            for former in node.was:
                if not ID.fullmatch(former):
                    message = f"`{node.id}`: `{_short(former)}` can't have been the id of a {node.kind}"
                    self._add("GB017", message, path, ID_RULE, node=node.id)
            owner = owners.setdefault(node.identity, node.id) if node.was else node.id
            if owner != node.id:
                now = "is" if owner == node.identity else "was too"
                message = (
                    f"`{node.id}`: the former id `{node.identity}` can't be its own: that `{owner}` {now}"
                )
                hint = "A checkpoint knows a node by its first id, so that is one node's; correct `was`."
                self._add("GB104", message, path, hint, node=node.id)

    def _node(self, section: str, name: str, entry: Any) -> Node | None:
        path: Path = (section, name)
        kind = SECTIONS[section]
        if not ID.fullmatch(name):
            message = f"`{_short(name)}` can't be the id of a {kind}"
            self._add("GB017", message, path, ID_RULE, key=True, node=name)
        if not isinstance(entry, dict):
            message = f"the {kind} `{name}` must be a mapping with `gem`"
            self._add("GB005", message, path, f"Write `{name}: {{gem: …}}`.", node=name)
            return None
        shape: Any = self._validated(NODE_SHAPES[section], entry, path, name)
        if shape is None or any(isinstance(entry.get(k), Unknown) for k in ("gem", "options")):
            return None
        written: Any = ()
        if kind != "source":
            written = entry["inputs"] if shape.input is None else entry["input"]
        if any(isinstance(text, Unknown) for text in _texts(written)):
            return None
        inputs = _inputs(written, path)
        self._check_input_names(inputs, name)
        return Node(
            id=name,
            kind=kind,
            gem=shape.gem,
            options=shape.options or {},
            inputs=inputs,
            path=path,
            mode=self._source_mode(getattr(shape, "mode", None), path, name),
            output_mode=getattr(shape, "output_mode", "append"),
            trigger=_trigger(getattr(shape, "trigger", None)),
            description=shape.description,
            was=_former(shape.was),
            group=getattr(shape, "group", None) or "",
            health=health_of(self._health, shape.health) if kind == "target" else Health(),
            restarts=restarts_of(self._restarts, shape.restarts) if kind == "target" else None,
        )

    def _source_mode(self, written: str | None, path: Path, name: str) -> Any:
        """How a source is read: as it says, else as the whole pipeline."""
        if self._mode == "batch" and written == "stream":
            message = f"`{name}`: a batch pipeline has no streams"
            hint = "Remove `mode: stream` here, or `mode: batch` at the top of the file."
            self._add("GB005", message, (*path, "mode"), hint, node=name)
        return written or ("batch" if self._mode == "batch" and path[0] == "sources" else "stream")

    def _check_input_names(self, inputs: tuple[Input, ...], node: str) -> None:
        for found in inputs:
            if isinstance(found.path[-1], str) and not INPUT_NAME.fullmatch(found.name):
                message = f"`{node}`: `{_short(found.name)}` can't be the name of an input"
                hint = "Use letters, digits and underscores: expressions call the input by it."
                self._add("GB017", message, found.path, hint, key=True, node=node)

    def _validated(
        self,
        model: type[ShapeT],
        values: dict[str, Any],
        path: Path,
        node: str | None,
        *,
        quiet: bool = False,
    ) -> ShapeT | None:
        """The values as the model sees them; after reporting, what is left without the wrong ones."""
        try:
            return model.model_validate(values)
        except ValidationError as error:
            found = problems(error, values, model)
        if not quiet:
            for problem in found:
                if problem.kind != "ignored":
                    self._report(problem, path, node)
        wrong = {problem.path[0] for problem in found if problem.path}
        if not wrong:
            return None
        # What is unknown goes too: of very many problems not all are listed.
        known = model.model_fields.keys() - wrong
        kept = {key: value for key, value in values.items() if key in known}
        return self._validated(model, kept, path, node, quiet=True)

    def _report(self, problem: Problem, base: Path, node: str | None) -> None:
        subject = f"`{node}`: " if node else ""
        self._add(
            FILE_CODES[problem.kind],
            f"{subject}{problem.message}",
            (*base, *problem.path),
            problem.hint,
            key=problem.at_key,
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


def _former(written: str | list[str] | None) -> tuple[str, ...]:
    return (written,) if isinstance(written, str) else tuple(written or ())


def _texts(written: Any) -> list[Any]:
    if isinstance(written, dict):
        return list(written.values())
    return written if isinstance(written, list) else [written]


def _inputs(written: str | list[str] | dict[str, str], path: Path) -> tuple[Input, ...]:
    if isinstance(written, str):
        return (_input(written, None, (*path, "input")),)
    if isinstance(written, dict):
        return tuple(_input(text, name, (*path, "inputs", name)) for name, text in written.items())
    return tuple(_input(text, None, (*path, "inputs", n)) for n, text in enumerate(written))


def _input(text: str, name: str | None, path: Path) -> Input:
    node, dot, output = text.partition(".")
    return Input(node, output if dot else None, name or (output if dot else node), path)


def _trigger(shape: Any) -> Trigger:
    if shape is None:
        return Trigger()
    ((kind, value),) = shape.model_dump(exclude_none=True).items()
    return Trigger(kind, value if isinstance(value, str) else None)


def _short(text: str) -> str:
    return text if len(text) < 60 else f"{text[:60]}…"
