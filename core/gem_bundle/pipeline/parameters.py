"""Parameters of a pipeline: their types, where their values come from, profiles."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from gem_bundle.diagnostics import NOWHERE, Diagnostic, suggest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gem_bundle.pipeline.document import Locator, Path

ParameterType = Literal["string", "integer", "number", "boolean", "list", "mapping"]
_DECLARATION = {"type", "default", "description"}
_TYPES: dict[ParameterType, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "list": (list,),
    "mapping": (dict,),
}
_UNSET = object()


@dataclass(frozen=True, slots=True)
class Parameter:
    """One declared parameter.

    Args:
        name: How ``${name}`` and ``-p name=value`` call it.
        type: What its values are.
        default: Its default, or `Parameter.REQUIRED`.
        description: What it is for.
    """

    name: str
    type: ParameterType
    default: Any = _UNSET
    description: str = ""

    @property
    def required(self) -> bool:
        """Whether a run must give it a value."""
        return self.default is _UNSET


@dataclass
class Parameters:
    """The declared parameters and their values for one run."""

    declared: dict[str, Parameter]
    values: dict[str, Any]
    broken: frozenset[str]
    diagnostics: list[Diagnostic]


def read_parameters(
    section: Any,
    profiles: Any,
    locator: Locator,
    *,
    given: Mapping[str, str | Any] | None = None,
    profile: str | None = None,
    require: bool = True,
) -> Parameters:
    """Work out the values: given on the command line, else from the profile, else the default.

    Args:
        section: The ``parameters`` section of the file.
        profiles: The ``profiles`` section of the file.
        locator: Where things stand.
        given: Values by name; texts are read as the parameter's type.
        profile: The profile to use.
        require: Report parameters that have no value.
    """
    reader = _Reader(locator)
    declared = reader.declarations(section)
    chosen = reader.profile(profiles, profile, declared)
    broken = set(section if isinstance(section, dict) else ()) - set(declared)
    values: dict[str, Any] = {}
    for name, parameter in declared.items():
        if given and name in given:
            values[name] = reader.given(parameter, given[name])
        elif name in chosen:
            values[name] = reader.typed(parameter, chosen[name], ("profiles", profile or "", name))
        elif not parameter.required:
            values[name] = parameter.default
        elif require:
            reader.report(
                "GB011",
                f"the parameter `{name}` has no value",
                ("parameters", name),
                f"Give it with `-p {name}=…`, in a profile, or with a default.",
            )
        if values.get(name) is _UNSET:
            del values[name]
        if name not in values:
            broken.add(name)
    for name in given or ():
        if name not in declared and name not in broken:
            reader.diagnostics.append(
                Diagnostic(
                    "GB010",
                    "error",
                    f"the pipeline has no parameter `{name}` (given with `-p {name}=…`)",
                    place=locator.place(("parameters",)),
                    hint=suggest(name, declared, what="parameters"),
                )
            )
    return Parameters(declared, values, frozenset(broken), reader.diagnostics)


class _Reader:
    def __init__(self, locator: Locator) -> None:
        self._locator = locator
        self.diagnostics: list[Diagnostic] = []

    def report(self, code: str, message: str, path: Path, hint: str = "", key: bool = False) -> None:
        place = self._locator.place(path, key=key)
        self.diagnostics.append(Diagnostic(code, "error", message, None, path, place, hint))

    def declarations(self, section: Any) -> dict[str, Parameter]:
        if section is None:
            return {}
        if not isinstance(section, dict):
            self.report("GB005", "`parameters` must be a mapping of names to defaults", ("parameters",))
            return {}
        declared: dict[str, Parameter] = {}
        for name, value in section.items():
            path = ("parameters", name)
            if not re.match(r"[A-Za-z_]\w*$", name):
                self.report(
                    "GB017",
                    f"`{name}` can't be the name of a parameter",
                    path,
                    "Use letters, digits and underscores.",
                    key=True,
                )
                continue
            parameter = self._declaration(name, value, path)
            if parameter is not None:
                declared[name] = parameter
        return declared

    def _declaration(self, name: str, value: Any, path: Path) -> Parameter | None:
        if isinstance(value, dict) and value.keys() <= _DECLARATION and value.keys() & {"type", "default"}:
            kind = value.get("type")
            if kind is None and "default" in value:
                kind = _type_of(value["default"])
            if kind not in _TYPES:
                self.report(
                    "GB005",
                    f"`{kind}` is no type of a parameter",
                    (*path, "type"),
                    suggest(str(kind), _TYPES, what="types"),
                )
                return None
            parameter = Parameter(name, kind, description=str(value.get("description", "")))
            if "default" not in value:
                return parameter
            default = self.typed(parameter, value["default"], (*path, "default"))
            if default is _UNSET:
                return None
            return Parameter(name, kind, default, parameter.description)
        guessed = _type_of(value)
        if guessed is None:
            self.report(
                "GB005",
                f"the parameter `{name}` has neither a default nor a type",
                path,
                f"Write `{name}: {{type: string}}` for one that must be given.",
            )
            return None
        return Parameter(name, guessed, value)

    def profile(
        self, profiles: Any, chosen: str | None, declared: dict[str, Parameter]
    ) -> dict[str, Any]:
        if profiles is not None and not isinstance(profiles, dict):
            self.report("GB005", "`profiles` must be a mapping of names to parameter values", ("profiles",))
            return {}
        known: dict[str, Any] = profiles or {}
        for profile, values in known.items():
            if values is not None and not isinstance(values, dict):
                self.report(
                    "GB005", f"the profile `{profile}` must be a mapping", ("profiles", profile)
                )
                continue
            for name in values or ():
                if name not in declared:
                    self.report(
                        "GB010",
                        f"the profile `{profile}` sets `{name}`, which is no parameter",
                        ("profiles", profile, name),
                        suggest(name, declared, what="parameters"),
                        key=True,
                    )
        if chosen is None:
            return {}
        if chosen not in known:
            place = self._locator.place(("profiles",)) if known else NOWHERE
            hint = suggest(chosen, known, what="profiles")
            self.diagnostics.append(
                Diagnostic("GB013", "error", f"there is no profile `{chosen}`", place=place, hint=hint)
            )
            return {}
        values = known[chosen]
        return values if isinstance(values, dict) else {}

    def typed(self, parameter: Parameter, value: Any, path: Path) -> Any:
        """The value if it is of the parameter's type; otherwise reports it."""
        types = _TYPES[parameter.type]
        is_boolean = isinstance(value, bool)
        if isinstance(value, types) and (not is_boolean or parameter.type == "boolean"):
            return value
        self.report(
            "GB012", f"the parameter `{parameter.name}` is of type {parameter.type}, not `{value}`", path
        )
        return _UNSET

    def given(self, parameter: Parameter, value: Any) -> Any:
        """A value from the command line or from Python: texts are read as the parameter's type."""
        if isinstance(value, str) and parameter.type != "string":
            parsed = _parse(value, parameter.type)
            if parsed is _UNSET:
                self.diagnostics.append(
                    Diagnostic(
                        "GB012",
                        "error",
                        f"the parameter `{parameter.name}` is of type {parameter.type}; "
                        f"`{value}` can't be read as one",
                        place=self._locator.place(("parameters", parameter.name)),
                        hint=_HOW_TO_WRITE[parameter.type].format(name=parameter.name),
                    )
                )
            return parsed
        return self.typed(parameter, value, ("parameters", parameter.name))


_HOW_TO_WRITE = {
    "integer": "Write a whole number, for example `-p {name}=10`.",
    "number": "Write a number, for example `-p {name}=0.5`.",
    "boolean": "Write `-p {name}=true` or `-p {name}=false`.",
    "list": "Write `-p {name}=a,b` or `-p '{name}=[a, b]'`.",
    "mapping": "Write `-p '{name}={{a: 1}}'`.",
}


def _type_of(value: Any) -> ParameterType | None:
    if isinstance(value, bool):
        return "boolean"
    for kind, types in _TYPES.items():
        if isinstance(value, types):
            return kind
    return None


def _parse(text: str, kind: ParameterType) -> Any:
    from gem_bundle.pipeline.document import parse

    if kind == "list" and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    document = parse(text, "")
    value = document.values
    if document.diagnostics or not isinstance(value, _TYPES[kind]):
        return _UNSET
    return value if isinstance(value, bool) == (kind == "boolean") else _UNSET
