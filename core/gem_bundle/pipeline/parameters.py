"""Parameters of a pipeline: their types, where their values come from, profiles."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gem_bundle.diagnostics import NOWHERE, Diagnostic, suggest
from gem_bundle.pipeline.document import Unknown
from gem_bundle.pipeline.problems import shown
from gem_bundle.pipeline.secrets import FromEnvironment, Secret

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gem_bundle.pipeline.document import Locator, Path

ParameterType = Literal["string", "integer", "number", "boolean", "list", "mapping"]
NAME = re.compile(r"[A-Za-z_]\w*")
DECLARATION = frozenset({"type", "default", "description"})
_TYPES: dict[ParameterType, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "list": (list,),
    "mapping": (dict,),
}
_A: dict[ParameterType, str] = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "list": "a list",
    "mapping": "a mapping",
}
_UNSET = object()


class Parameter(NamedTuple):
    """One declared parameter.

    Args:
        name: How ``${name}`` and ``-p name=value`` call it.
        type: What its values are.
        default: Its default as the file gives it, references not filled in; see `required`.
        description: What it is for.
        path: Where the default stands in the file, or the parameter where it has none.
    """

    name: str
    type: ParameterType
    default: Any = _UNSET
    description: str = ""
    path: Path = ()

    @property
    def required(self) -> bool:
        """Whether it has no default, so that a run or a profile must give it a value."""
        return self.default is _UNSET


class Parameters(NamedTuple):
    """The declared parameters and their values for one run.

    Args:
        declared: The parameters by name.
        values: Their values, references filled in.
        broken: The names that are in the file but have no value.
        diagnostics: What is wrong.
    """

    declared: dict[str, Parameter]
    values: dict[str, Any]
    broken: frozenset[str]
    diagnostics: list[Diagnostic]


def read_parameters(
    section: Any,
    profiles: Any,
    locator: Locator,
    *,
    resolve: Callable[[Any, Path], Any],
    given: Mapping[str, Any] | None = None,
    profile: str | None = None,
    require: bool = True,
) -> Parameters:
    """Work out the values: given on the command line, else from the profile, else the default.

    Args:
        section: The ``parameters`` section of the file.
        profiles: The ``profiles`` section of the file.
        locator: Where things stand.
        resolve: Fills in the references to the environment and to secrets in a value.
        given: Values by name; texts are read as the parameter's type.
        profile: The profile to use.
        require: Report parameters that have no value.
    """
    reader = _Reader(locator, resolve)
    declared = reader.declarations(section)
    chosen = reader.profile(profiles, profile, declared)
    values: dict[str, Any] = {}
    for name, parameter in declared.items():
        if given and name in given:
            value = reader.value(parameter, given[name], ("parameters", name), given=True)
        elif name in chosen:
            value = reader.value(parameter, chosen[name], ("profiles", profile or "", name))
        elif not parameter.required:
            value = reader.value(parameter, parameter.default, parameter.path)
        else:
            value = _UNSET
            if require:
                reader.report(
                    "GB011",
                    f"the parameter `{name}` has no value",
                    ("parameters", name),
                    f"Give it with `-p {name}=…`, in a profile, or with a default.",
                    key=True,
                )
        if value is not _UNSET:
            values[name] = value
    names = {*declared, *(section if isinstance(section, dict) else ())}
    for name in given or ():
        if name not in names:
            path = ("parameters",)
            message = f"the pipeline has no parameter `{name}` (given with `-p {name}=…`)"
            hint = suggest(name, declared, what="parameters")
            reader.report("GB010", message, path, hint, key=True)
    return Parameters(declared, values, frozenset(names - values.keys()), reader.diagnostics)


class _Reader:
    def __init__(self, locator: Locator, resolve: Callable[[Any, Path], Any]) -> None:
        self._locator = locator
        self._resolve = resolve
        self.diagnostics: list[Diagnostic] = []

    def report(self, code: str, message: str, path: Path, hint: str = "", *, key: bool = False) -> None:
        place = self._locator.place(path, key=key)
        self.diagnostics.append(Diagnostic(code, "error", message, None, path, place, hint))

    def declarations(self, section: Any) -> dict[str, Parameter]:
        if section is None:
            return {}
        if not isinstance(section, dict):
            message = "`parameters` must be a mapping of names to defaults"
            hint = "Write `parameters: {name: default}`."
            self.report("GB005", message, ("parameters",), hint)
            return {}
        declared: dict[str, Parameter] = {}
        for name, value in section.items():
            path = ("parameters", name)
            if not NAME.fullmatch(name):
                message = f"`{name}` can't be the name of a parameter"
                hint = "Use letters, digits and underscores."
                self.report("GB017", message, path, hint, key=True)
                continue
            parameter = self._declaration(name, value, path)
            if parameter is not None:
                declared[name] = parameter
        return declared

    def _declaration(self, name: str, value: Any, path: Path) -> Parameter | None:
        if not _is_declaration(value):
            return self._with_default(name, value, path)
        for key in value.keys() - DECLARATION:
            message = f"unknown key `{key}` in the declaration of the parameter `{name}`"
            hint = suggest(key, DECLARATION)
            self.report("GB004", message, (*path, key), hint, key=True)
        description = str(value.get("description") or "")
        if "type" not in value:
            if "default" not in value:
                return self._with_default(name, None, path)
            return self._with_default(name, value["default"], (*path, "default"), description)
        kind = value["type"]
        if not isinstance(kind, str) or kind not in _TYPES:
            message = f"{shown(kind)} is no type of a parameter"
            self.report("GB005", message, (*path, "type"), suggest(str(kind), _TYPES, what="types"))
            return None
        if "default" not in value:
            return Parameter(name, kind, description=description, path=path)
        default = value["default"]
        path = (*path, "default")
        parameter = Parameter(name, kind, default, description, path)
        if not _refers(default) and self._typed(parameter, default, path) is _UNSET:
            return None
        return parameter

    def _with_default(self, name: str, default: Any, path: Path, description: str = "") -> Parameter | None:
        kind = _type_of(default)
        if kind is None:
            message = f"the parameter `{name}` has neither a default nor a type"
            hint = f"Write `{name}: {{type: string}}` for one that must be given."
            self.report("GB005", message, path, hint)
            return None
        return Parameter(name, kind, default, description, path)

    def profile(self, profiles: Any, chosen: str | None, declared: dict[str, Parameter]) -> dict[str, Any]:
        if profiles is not None and not isinstance(profiles, dict):
            message = "`profiles` must be a mapping of names to parameter values"
            hint = "Write `profiles: {prod: {name: value}}`."
            self.report("GB005", message, ("profiles",), hint)
            return {}
        known: dict[str, Any] = profiles or {}
        for profile, values in known.items():
            self._check_profile(profile, values, declared)
        if chosen is None:
            return {}
        if chosen not in known:
            place = self._locator.place(("profiles",), key=True) if known else NOWHERE
            hint = suggest(chosen, known, what="profiles")
            message = f"there is no profile `{chosen}`"
            self.diagnostics.append(Diagnostic("GB013", "error", message, None, ("profiles",), place, hint))
            return {}
        values = known[chosen]
        return values if isinstance(values, dict) else {}

    def _check_profile(self, profile: str, values: Any, declared: dict[str, Parameter]) -> None:
        path = ("profiles", profile)
        if values is not None and not isinstance(values, dict):
            message = f"the profile `{profile}` must be a mapping"
            self.report("GB005", message, path, "Write `name: value` for each parameter it sets.")
            return
        for name, value in (values or {}).items():
            parameter = declared.get(name)
            if parameter is None:
                message = f"the profile `{profile}` sets `{name}`, which is no parameter"
                hint = suggest(name, declared, what="parameters")
                self.report("GB010", message, (*path, name), hint, key=True)
            elif not _refers(value):
                self._typed(parameter, value, (*path, name))

    def value(self, parameter: Parameter, raw: Any, path: Path, *, given: bool = False) -> Any:
        """The value with references filled in, if it is of the parameter's type.

        Texts that are given on the command line or come from the environment are read as the type.
        """
        value = self._resolve(raw, path) if _refers(raw) else raw
        if isinstance(value, Unknown):
            return value
        if isinstance(value, str) and parameter.type != "string" and (given or value is not raw):
            parsed = _parse(str(value), parameter.type)
            if parsed is _UNSET:
                message = f"{_must_be(parameter)}; {shown(value)} can't be read as one"
                hint = _HOW_TO_WRITE[parameter.type].format(name=parameter.name)
                self.report("GB012", message, path, hint)
            return _marked(parsed, type(value))
        if raw is value and not given:
            # The file's own values are reported where they are declared, used or not.
            return value if _fits(value, parameter.type) else _UNSET
        return self._typed(parameter, value, path)

    def _typed(self, parameter: Parameter, value: Any, path: Path) -> Any:
        if _fits(value, parameter.type):
            return value
        message = f"{_must_be(parameter)}, not {shown(value)}"
        unquoted = parameter.type == "string" and isinstance(value, int | float)
        self.report("GB012", message, path, "Put it in quotes." if unquoted else "")
        return _UNSET


_HOW_TO_WRITE = {
    "integer": "Write a whole number, for example `-p {name}=10`.",
    "number": "Write a number, for example `-p {name}=0.5`.",
    "boolean": "Write `-p {name}=true` or `-p {name}=false`.",
    "list": "Write `-p {name}=a,b` or `-p '{name}=[a, b]'`.",
    "mapping": "Write `-p '{name}={{a: 1}}'`.",
}


def _must_be(parameter: Parameter) -> str:
    return f"the parameter `{parameter.name}` must be {_A[parameter.type]}"


def _is_declaration(value: Any) -> bool:
    """Whether a parameter is declared, and not just given a default that is a mapping."""
    if not isinstance(value, dict) or not value.keys() & DECLARATION:
        return False
    kind = value.get("type")
    return value.keys() <= DECLARATION or (isinstance(kind, str) and kind in _TYPES)


def _refers(value: Any) -> bool:
    """Whether there is a reference in a value."""
    if isinstance(value, dict):
        return any(_refers(item) for item in value.values())
    if isinstance(value, list):
        return any(_refers(item) for item in value)
    return isinstance(value, str) and "${" in value


def _type_of(value: Any) -> ParameterType | None:
    return next((kind for kind in _TYPES if _fits(value, kind)), None)


def _fits(value: Any, kind: ParameterType) -> bool:
    # A boolean is an int to Python, and no number to anybody else.
    return isinstance(value, _TYPES[kind]) and isinstance(value, bool) == (kind == "boolean")


def _marked(value: Any, kind: type[str]) -> Any:
    """A value that was read from a text, its texts of the same kind as that one."""
    if kind not in {Secret, FromEnvironment}:
        return value
    if isinstance(value, dict):
        return {key: _marked(item, kind) for key, item in value.items()}
    if isinstance(value, list):
        return [_marked(item, kind) for item in value]
    return kind(value) if isinstance(value, str) else value


def _parse(text: str, kind: ParameterType) -> Any:
    """A text as a value of a type, or `_UNSET`."""
    from gem_bundle.pipeline.document import parse

    if kind == "list" and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    document = parse(text, "")
    fits = not document.diagnostics and _fits(document.values, kind)
    return document.values if fits else _UNSET
