"""A verdict as SARIF 2.1.0, for code scanning and for editors that show it.

Section numbers are those of the OASIS standard *Static Analysis Results Interchange Format (SARIF)
Version 2.1.0*. What GitHub's code scanning asks for beyond it is there too.
"""

from __future__ import annotations

import json
import re
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from gem_bundle.check.formats.files import checkout, relative
from gem_bundle.check.formats.json import written

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gem_bundle.codes import Code
    from gem_bundle.diagnostics import Diagnostic, Severity

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
FINGERPRINT = "gemBundlePlace/v1"

# What a code is about, by the digit behind `GB`.
_SUBJECTS = {
    "0": "file",
    "1": "graph",
    "2": "options",
    "3": "streaming",
    "4": "checkpoint",
    "5": "environment",
    "6": "bundle",
    "7": "test",
    "8": "scaffold",
}
# GitHub's words for the three severities.
_PROBLEMS = {"error": "error", "warning": "warning", "note": "recommendation"}
_LINK = re.compile(r"\[(?=[^\]]*\]\()")


def as_sarif(diagnostics: Iterable[Diagnostic], *, ok: bool, root: Path | None = None) -> str:
    """A verdict as one run of a SARIF log.

    A result keeps its fingerprint when its line moves and when its message is worded otherwise.
    A diagnostic that belongs to no file is a notification about the tool's configuration (3.20.21).

    Args:
        diagnostics: What was found.
        ok: The verdict.
        root: The root of the checked out repository, which files are named from; by default
            `checkout`.
    """
    from importlib.metadata import version

    root = root or checkout()
    found = list(diagnostics)
    results = [diagnostic for diagnostic in found if diagnostic.file]
    notifications = [diagnostic for diagnostic in found if not diagnostic.file]
    rules, notices = _descriptors(results), _descriptors(notifications)
    order = {code: index for index, code in enumerate(rules)}
    places = _Places(root)
    run = {
        "tool": {
            "driver": {
                "name": "gem-bundle",
                "version": version("gem-bundle"),
                "rules": list(rules.values()),
                "notifications": list(notices.values()),
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the checked out repository."}}},
        "invocations": [
            {
                "executionSuccessful": True,
                "exitCode": 0 if ok else 1,
                "toolConfigurationNotifications": [
                    {
                        "descriptor": {"id": diagnostic.code, "index": list(notices).index(diagnostic.code)},
                        "level": diagnostic.severity,
                        "message": _message(diagnostic),
                    }
                    for diagnostic in notifications
                ],
            }
        ],
        "results": [
            {
                "ruleId": diagnostic.code,
                "ruleIndex": order[diagnostic.code],
                "level": diagnostic.severity,
                "message": _message(diagnostic),
                "locations": [places.location(diagnostic)],
                "partialFingerprints": {FINGERPRINT: places.fingerprint(diagnostic)},
            }
            for diagnostic in results
        ],
    }
    return written({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _message(diagnostic: Diagnostic) -> dict[str, str]:
    """The message and the hint; what looks like a link in a stranger's file becomes none (3.11.6).

    Braces are not doubled (3.11.5): nobody fills in placeholders where a result has no arguments, and
    viewers would show both.
    """
    text = "\n".join(part for part in (diagnostic.message, diagnostic.hint) if part)
    return {"text": _LINK.sub(r"\\[", text)}


class _Places:
    """Locations and fingerprints of the results of one run."""

    def __init__(self, root: Path) -> None:
        self._relative = cache(lambda file: relative(file, root))
        self._seen: dict[str, int] = {}

    def location(self, diagnostic: Diagnostic) -> dict[str, Any]:
        """Where it is in the file and, where it is about a part of a pipeline, which part."""
        physical: dict[str, Any] = {"artifactLocation": self._artifact(diagnostic.file)}
        if diagnostic.line:
            physical["region"] = {"startLine": diagnostic.line}
            if diagnostic.column:
                physical["region"]["startColumn"] = diagnostic.column
        location: dict[str, Any] = {"physicalLocation": physical}
        if diagnostic.path:
            logical = {"fullyQualifiedName": ".".join(map(str, diagnostic.path)), "kind": "property"}
            location["logicalLocations"] = [logical]
        return location

    def fingerprint(self, diagnostic: Diagnostic) -> str:
        """What stays the same while lines move: the code, the file and the keys that lead to it.

        Of several that have all that in common, as in a file that isn't YAML, each has its number.
        """
        about = [diagnostic.code, self._relative(diagnostic.file), *map(str, diagnostic.path)]
        text = json.dumps(about)
        number = self._seen[text] = self._seen.get(text, 0) + 1
        return sha256(f"{text}#{number}".encode()).hexdigest()[:32]

    def _artifact(self, file: str) -> dict[str, str]:
        """A relative reference to a file below the root, else its URI (3.4)."""
        name = self._relative(file)
        if name.startswith("/"):
            return {"uri": f"file://{quote(name)}"}
        return {"uri": quote(name), "uriBaseId": ROOT}


def _descriptors(found: Iterable[Diagnostic]) -> dict[str, dict[str, Any]]:
    """What is to be known of each code, in the order of the codes."""
    from gem_bundle.codes import CODES

    severities: dict[str, Severity] = {}
    for diagnostic in found:
        severities.setdefault(diagnostic.code, diagnostic.severity)
    return {
        code: _rule(CODES[code]) if code in CODES else _foreign(code, severities[code])
        for code in sorted(severities)
    }


def _rule(code: Code) -> dict[str, Any]:
    """What `gem-bundle explain` says of a code."""
    parts = [("What breaks it:", code.breaks), ("What keeps it:", code.keeps)]
    source = [f"Source: {code.source}."] if code.source else []
    text = [code.why, *(f"{title}\n\n{_indented(example)}" for title, example in parts), *source]
    marked = [code.why, *(f"{title}\n\n```yaml\n{example}\n```" for title, example in parts), *source]
    return {
        "id": code.code,
        "shortDescription": {"text": f"{code.title[0].upper()}{code.title[1:]}."},
        "fullDescription": {"text": code.why},
        "help": {"text": "\n\n".join(text), "markdown": "\n\n".join(marked)},
        "defaultConfiguration": {"level": code.severity},
        "properties": {"tags": [_SUBJECTS[code.code[2]]], "problem.severity": _PROBLEMS[code.severity]},
    }


def _foreign(code: str, severity: Severity) -> dict[str, Any]:
    """A rule of a plugin, which the catalogue doesn't know; each result says what it is about."""
    text = "A rule of an installed plugin."
    return {
        "id": code,
        "shortDescription": {"text": text},
        "fullDescription": {"text": text},
        "help": {"text": f"{text} Its message says what is wrong and what to do."},
        "defaultConfiguration": {"level": severity},
        "properties": {"tags": ["plugin"], "problem.severity": _PROBLEMS[severity]},
    }


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())
