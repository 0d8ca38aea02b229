"""References in a pipeline file: ``${name}``, ``${env:NAME}``, ``${secret:scope/key}``; ``$${`` writes ``${``."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gem_bundle.diagnostics import Diagnostic, suggest
from gem_bundle.pipeline.secrets import SecretStore, UnresolvedSecret

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gem_bundle.pipeline.document import Locator, Path

_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_NAME = re.compile(r"[A-Za-z_]\w*$")
_SECRET = re.compile(r"([\w.-]+)/([\w.-]+)$")
_MISSING = object()


@dataclass
class Resolver:
    """Fills in references.

    Args:
        parameters: The values of the pipeline's parameters.
        locator: Where things stand.
        environment: Where ``${env:…}`` is looked up.
        secrets: Where ``${secret:…}`` is looked up; None leaves stand-ins, as a check does.
        skip_env: Take a missing environment variable for an empty text instead of reporting it.
    """

    parameters: Mapping[str, Any]
    locator: Locator
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    secrets: SecretStore | None = None
    skip_env: bool = False
    broken: frozenset[str] = frozenset()
    diagnostics: list[Diagnostic] = field(default_factory=list)
    secret_names: set[str] = field(default_factory=set)

    def resolve(self, value: Any, path: Path) -> Any:
        """The value with all references in it, at any depth, replaced."""
        if isinstance(value, str):
            return self._text(value, path) if "${" in value else value
        if isinstance(value, dict):
            return {key: self.resolve(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.resolve(item, (*path, index)) for index, item in enumerate(value)]
        return value

    def _text(self, text: str, path: Path) -> Any:
        whole = _REFERENCE.fullmatch(text)
        if whole and whole.group(1) is not None:
            found = self._look_up(whole.group(1), path)
            return "" if found is _MISSING else found
        secret = False

        def replace(match: re.Match[str]) -> str:
            nonlocal secret
            if match.group(0) == "$${":
                return "${"
            if match.group(1) is None:
                self._report("GB016", "`${` is not closed", path, "Write `$${` for a literal `${`.")
                return ""
            found = self._look_up(match.group(1), path)
            secret = secret or isinstance(found, UnresolvedSecret)
            if isinstance(found, dict | list):
                self._report(
                    "GB016",
                    f"`{match.group(0)}` is a {type(found).__name__} and can't stand inside a text",
                    path,
                    "Make the reference the whole value.",
                )
                return ""
            if isinstance(found, bool):
                return str(found).lower()
            return "" if found is _MISSING or found is None else str(found)

        resolved = _REFERENCE.sub(replace, text)
        return UnresolvedSecret(resolved) if secret else resolved

    def _look_up(self, reference: str, path: Path) -> Any:
        kind, colon, rest = reference.partition(":")
        if not colon:
            return self._parameter(reference.strip(), path)
        if kind == "env":
            return self._variable(rest.strip(), path)
        if kind == "secret":
            return self._secret(rest.strip(), path)
        self._report(
            "GB016",
            f"`${{{reference}}}` is no reference: `{kind}` is not known",
            path,
            "Write `${name}`, `${env:NAME}` or `${secret:scope/key}`; `$${` for a literal `${`.",
        )
        return _MISSING

    def _parameter(self, name: str, path: Path) -> Any:
        if name in self.parameters:
            return self.parameters[name]
        if name in self.broken:
            return _MISSING
        if not _NAME.match(name):
            self._report(
                "GB016",
                f"`${{{name}}}` is no reference",
                path,
                "Write `${name}`, `${env:NAME}` or `${secret:scope/key}`; `$${` for a literal `${`.",
            )
            return _MISSING
        known = suggest(name, self.parameters, what="parameters")
        self._report("GB010", f"there is no parameter `{name}`", path, known)
        return _MISSING

    def _variable(self, name: str, path: Path) -> Any:
        value = self.environment.get(name)
        if value is None and not self.skip_env:
            self._report(
                "GB014",
                f"the environment variable `{name}` is not set",
                path,
                f"Set it, for example with `export {name}=…`, or use a parameter with a default.",
            )
        return "" if value is None else value

    def _secret(self, name: str, path: Path) -> Any:
        match = _SECRET.match(name)
        if not match:
            self._report(
                "GB016", f"`${{secret:{name}}}` is no secret", path, "Write `${secret:scope/key}`."
            )
            return _MISSING
        self.secret_names.add(name)
        if self.secrets is None:
            return UnresolvedSecret(f"secret {name}")
        value, looked = self.secrets.find(*match.groups())
        if value is None:
            places = "; ".join(looked)
            self._report("GB015", f"the secret `{name}` can't be found", path, f"Looked at: {places}.")
            return UnresolvedSecret(f"secret {name}")
        return value

    def _report(self, code: str, message: str, path: Path, hint: str) -> None:
        place = self.locator.place(path)
        node = str(path[1]) if len(path) > 1 and path[0] in _SECTIONS else None
        self.diagnostics.append(Diagnostic(code, "error", message, node, path, place, hint))


_SECTIONS = frozenset({"sources", "transforms", "targets"})
