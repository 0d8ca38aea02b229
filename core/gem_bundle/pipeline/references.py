"""References in a pipeline file: ``${name}``, ``${env:NAME}``, ``${secret:scope/key}``.

``$${`` writes a literal ``${``. A value that is exactly one reference keeps the type of what it
refers to; inside a longer text it becomes a part of the text.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from gem_bundle.diagnostics import Diagnostic, suggest
from gem_bundle.pipeline.document import MAX_TEXT, Unknown
from gem_bundle.pipeline.secrets import FromEnvironment, Secret, UnresolvedSecret, written

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from gem_bundle.pipeline.document import Locator, Path
    from gem_bundle.pipeline.secrets import SecretStore

MAX_EXPANSION = 2_000_000
MAX_REFERENCES = 10_000
SECTIONS = frozenset({"sources", "transforms", "targets"})

_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_NAME = re.compile(r"[A-Za-z_]\w*")
# Neither part may be `..`: they are names of files in the folder of secrets.
_SECRET = re.compile(r"(\w[\w.-]*)/(\w[\w.-]*)")
_FORMS = "Write `${name}`, `${env:NAME}` or `${secret:scope/key}`; `$${` for a literal `${`."


class Resolver:
    """Fills in references.

    Args:
        parameters: The values of the pipeline's parameters; None where parameters can't be used,
            in the values of parameters themselves.
        locator: Where things stand.
        environment: Where ``${env:…}`` is looked up; by default the process's.
        secrets: Where ``${secret:…}`` is looked up; None leaves stand-ins, as a check does.
        skip_env: Leave a stand-in for a missing environment variable instead of reporting it.
        broken: Names of parameters without a value that were reported already.

    Attributes:
        diagnostics: What is wrong.
        secret_names: The secrets referred to, as ``scope/key``.
        variables: The values of the environment variables referred to.
        unset: What would be said of missing environment variables, where that isn't reported.
    """

    def __init__(
        self,
        parameters: Mapping[str, Any] | None,
        locator: Locator,
        *,
        environment: Mapping[str, str] | None = None,
        secrets: SecretStore | None = None,
        skip_env: bool = False,
        broken: Container[str] = (),
    ) -> None:
        self._parameters = parameters
        self._locator = locator
        self._environment = os.environ if environment is None else environment
        self._secrets = secrets
        self._skip_env = skip_env
        self._broken = broken
        self._expanded = 0
        self._references = 0
        self._is_over = False
        self._weights: dict[str, int] = {}
        self.diagnostics: list[Diagnostic] = []
        self.secret_names: set[str] = set()
        self.variables: set[str] = set()
        self.unset: list[Diagnostic] = []

    def resolve(self, value: Any, path: Path) -> Any:
        """The value with all references in it, at any depth, replaced.

        Args:
            value: What the file holds.
            path: Where it stands.
        """
        if isinstance(value, str):
            return self._text(value, path) if "${" in value else value
        if isinstance(value, dict):
            return {key: self.resolve(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.resolve(item, (*path, index)) for index, item in enumerate(value)]
        return value

    def _text(self, text: str, path: Path) -> Any:
        self._references += text.count("${")
        if self._references > MAX_REFERENCES:
            message = f"the file has more than {MAX_REFERENCES:,} references"
            return self._too_much(message, path, "Write some of the values themselves.")
        whole = _REFERENCE.fullmatch(text)
        if whole and whole.group(1) is not None:
            return self._look_up(whole.group(1), path)
        kind: type[str] = str
        parts: list[str] = []
        as_written: list[str | None] = []
        end = 0
        for match in _REFERENCE.finditer(text):
            parts.append(text[end : match.start()])
            as_written.append(parts[-1])
            end = match.end()
            if match.group(0) == "$${":
                parts.append("${")
                as_written.append("$${")
                continue
            if match.group(1) is None:
                hint = "Close it with `}`, or write `$${` for a literal `${`."
                found = self._report("GB016", "`${` is not closed", path, hint)
            else:
                found = self._look_up(match.group(1), path)
            if isinstance(found, dict | list):
                what = "mapping" if isinstance(found, dict) else "list"
                message = f"`{match.group(0)}` is a {what} and can't stand inside a text"
                hint = "Make the reference the whole value."
                found = self._report("GB016", message, path, hint)
            kind = _kind(kind, found)
            parts.append(_as_text(found))
            is_plain = not isinstance(found, Unknown | Secret | FromEnvironment)
            as_written.append(parts[-1].replace("${", "$${") if is_plain else written(found))
        parts.append(text[end:])
        as_written.append(parts[-1])
        filled = "".join(parts)
        if len(filled) > MAX_TEXT:
            message = f"the text has more than {MAX_TEXT:,} characters when its references are filled in"
            return self._too_much(message, path, "Refer to long parameters less often.")
        return kind(filled) if kind is str or None in as_written else _marked(kind(filled), as_written)

    def _too_much(self, message: str, path: Path, hint: str) -> Unknown:
        """Say once that there is far too much; after that nothing is filled in any more."""
        if self._is_over:
            return Unknown("unknown")
        self._is_over = True
        return self._report("GB008", message, path, hint)

    def _look_up(self, reference: str, path: Path) -> Any:
        kind, colon, rest = reference.partition(":")
        if not colon:
            return self._parameter(reference.strip(), path)
        if kind == "env":
            return self._variable(rest.strip(), path)
        if kind == "secret":
            return self._secret(rest.strip(), path)
        message = f"`${{{reference}}}` is no reference: `{kind}` is not known"
        return self._report("GB016", message, path, _FORMS)

    def _parameter(self, name: str, path: Path) -> Any:
        if not _NAME.fullmatch(name):
            return self._report("GB016", f"`${{{name}}}` is no reference", path, _FORMS)
        if self._parameters is None:
            message = f"the value of a parameter can't refer to another one, `{name}`"
            return self._report("GB016", message, path, _FORMS)
        if name in self._parameters:
            if not _may_hold_secrets(path) and _holds_secret(self._parameters[name]):
                return self._misplaced_secret(path)
            return self._charged(name, path)
        if name in self._broken:
            return Unknown(name)
        hint = suggest(name, self._parameters, what="parameters")
        return self._report("GB010", f"there is no parameter `{name}`", path, hint)

    def _charged(self, name: str, path: Path) -> Any:
        """A parameter's value, unless all that was filled in so far is far too much."""
        assert self._parameters is not None
        value = self._parameters[name]
        weight = self._weights.get(name)
        if weight is None:
            weight = self._weights[name] = _weight(value)
        self._expanded += weight
        if self._expanded > MAX_EXPANSION:
            message = f"the file expands to more than {MAX_EXPANSION:,} characters"
            return self._too_much(message, path, "Refer to long parameters less often.")
        return value

    def _variable(self, name: str, path: Path) -> Any:
        value = self._environment.get(name)
        if value is not None:
            self.variables.add(value)
            return _marked(FromEnvironment(value), [f"${{env:{name}}}"])
        hint = f"Set it, for example with `export {name}=…`, or use a parameter with a default."
        found = self._report("GB014", f"the environment variable `{name}` is not set", path, hint)
        if not self._skip_env:
            return found
        self.unset.append(self.diagnostics.pop())
        return _marked(Unknown(name), [f"${{env:{name}}}"])

    def _secret(self, name: str, path: Path) -> Any:
        match = _SECRET.fullmatch(name)
        if not match:
            message = f"`${{secret:{name}}}` is no secret"
            return self._report("GB016", message, path, "Write `${secret:scope/key}`.")
        if not _may_hold_secrets(path):
            return self._misplaced_secret(path)
        self.secret_names.add(name)
        if self._secrets is None:
            stand_in = UnresolvedSecret(re.sub(r"\W", "_", f"secret_{name}"))
            return _marked(stand_in, [f"${{secret:{name}}}"])
        value, looked = self._secrets.find(*match.groups())
        if value is None:
            hint = f"Looked at: {'; '.join(looked)}."
            return self._report("GB015", f"the secret `{name}` can't be found", path, hint)
        return _marked(Secret(value), [f"${{secret:{name}}}"])

    def _misplaced_secret(self, path: Path) -> Any:
        message = f"a secret can't stand in `{path[-1]}`, where its value would be shown"
        hint = "Secrets belong into options, Spark settings and parameters."
        return self._report("GB016", message, path, hint)

    def _report(self, code: str, message: str, path: Path, hint: str) -> Unknown:
        """Note a problem, and give the stand-in for the value that isn't there."""
        node = str(path[1]) if len(path) > 1 and path[0] in SECTIONS else None
        place = self._locator.place(path)
        self.diagnostics.append(Diagnostic(code, "error", message, node, path, place, hint))
        return Unknown("unknown")


def _may_hold_secrets(path: Path) -> bool:
    if path[0] in SECTIONS:
        return len(path) > 3 and path[2] == "options"
    return path[0] in {"parameters", "profiles", "spark"}


def _holds_secret(value: object) -> bool:
    if isinstance(value, dict):
        return any(_holds_secret(item) for item in value.values())
    if isinstance(value, list):
        return any(_holds_secret(item) for item in value)
    return isinstance(value, Secret | UnresolvedSecret)


def _marked(text: Any, as_written: list[Any]) -> Any:
    """The text, which knows how the file has it."""
    text.written = "".join(as_written)
    return text


def _kind(kind: type[str], found: object) -> type[str]:
    """What a text becomes when `found` is put into it: the first of these that one of them is."""
    for special in (UnresolvedSecret, Unknown, Secret, FromEnvironment):
        if isinstance(found, special) or issubclass(kind, special):
            return special
    return kind


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _weight(value: object) -> int:
    if isinstance(value, str):
        return len(value) + 1
    if isinstance(value, dict):
        return 1 + sum(len(key) + _weight(item) for key, item in value.items())
    if isinstance(value, list):
        return 1 + sum(_weight(item) for item in value)
    return 1
