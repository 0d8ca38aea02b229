"""Secrets: where ``${secret:scope/key}`` is looked up, and how values are kept out of what we print.

Looked up in this order: the environment variable ``GEM_BUNDLE_SECRET_<SCOPE>_<KEY>``, the file
``<scope>/<key>`` in the folder that ``GEM_BUNDLE_SECRETS_DIR`` names, the Databricks secret scope.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gem_bundle.pipeline.document import Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = "GEM_BUNDLE_SECRETS_DIR"
VARIABLE = "GEM_BUNDLE_SECRET_"
HIDDEN = "**********"


class UnresolvedSecret(Unknown):
    """The stand-in for a secret while a pipeline is checked."""

    __slots__ = ()


class Secret(str):
    """A secret's value, or a text with one in it. What is said about it never shows it.

    Attributes:
        written: The text as the file has it, where that is known.
    """

    __slots__ = ("written",)

    written: str


class FromEnvironment(str):
    """A text of an environment variable, or with one in it: not kept in records, since it may be a secret.

    Attributes:
        written: The text as the file has it, where that is known.
    """

    __slots__ = ("written",)

    written: str


def written(value: object) -> str | None:
    """A text with its references to secrets and the environment standing in it, and never their values.

    Args:
        value: A value whose references are filled in.

    Returns:
        None where it has no such reference, or it isn't known how the file has it.
    """
    return getattr(value, "written", None) if isinstance(value, Unknown | Secret | FromEnvironment) else None


def unmarked(value: Any) -> Any:
    """The value with texts of the environment as plain ones, for those who look at a text's exact type."""
    if isinstance(value, dict):
        return {key: unmarked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [unmarked(item) for item in value]
    return str(value) if isinstance(value, FromEnvironment) else value


_found: set[str] = set()


def hidden(text: str) -> str:
    """The text with every secret that this process has found replaced by asterisks.

    Very short values stay: hiding them would hide half of every text, and they are no secrets.
    """
    for value in sorted(_found, key=len, reverse=True):
        if len(value) > 2:
            text = text.replace(value, HIDDEN)
    return text


def found_values() -> tuple[str, ...]:
    """Every secret that this process has found, for whoever looks for what was made of one."""
    return tuple(_found)


class SecretStore:
    """Finds secrets, and remembers their values so that `hidden` can keep them out of all output.

    Args:
        environment: Where variables are looked up; by default the process's.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment

    def find(self, scope: str, key: str) -> tuple[str | None, list[str]]:
        """The secret's value if there is one, and every place that was looked at, in order."""
        looked: list[str] = []
        variable = VARIABLE + re.sub(r"\W", "_", f"{scope}_{key}").upper()
        looked.append(f"the environment variable {variable}")
        value = self._environment.get(variable)
        if value is None:
            value = self._from_file(scope, key, looked)
        if value is None:
            value = self._from_databricks(scope, key, looked)
        if value:
            _found.add(value)
        return value, looked

    def _from_file(self, scope: str, key: str, looked: list[str]) -> str | None:
        folder = self._environment.get(FOLDER)
        if not folder:
            looked.append(f"a file `{scope}/{key}` (no folder: {FOLDER} is not set)")
            return None
        path = Path(folder, scope, key)
        looked.append(f"the file {path}")
        try:
            return path.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError):
            return None

    def _from_databricks(self, scope: str, key: str, looked: list[str]) -> str | None:
        if "DATABRICKS_RUNTIME_VERSION" not in self._environment:
            looked.append("Databricks secrets (not on Databricks)")
            return None
        looked.append(f"the Databricks scope `{scope}`, key `{key}`")
        try:
            # Databricks brings it, and nobody else needs it.
            return str(import_module("databricks.sdk.runtime").dbutils.secrets.get(scope, key))
        except Exception:  # noqa: BLE001 (the SDK raises types of its own; any of them means "not there")
            return None
