"""The files of a project, and those of a gem's distribution."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gem_bundle.scaffold.names import GemNames, ProjectNames

LINE_LENGTH = 100
"""Of the Python that is written; its pyproject.toml says the same to ruff."""

_PLACEHOLDER = re.compile(r"@\{(\w+)\}")

# Where each file goes, and the template that it is made of.
_PROJECT = {
    "README.md": "README.md",
    "requirements.txt": "requirements.txt",
    "gem-bundle.toml": "settings.toml",
    "@{pipeline}.yaml": "pipeline.yaml",
    "@{pipeline}.test.yaml": "test.yaml",
    "data/orders/2026-01-05.json": "2026-01-05.json",
    "data/orders/2026-01-06.json": "2026-01-06.json",
    ".gitignore": "gitignore",
    ".github/workflows/ci.yml": "ci.yml",
}
_GEM = {
    "README.md": "@{kind}/README.md",
    "pyproject.toml": "gem/pyproject.toml",
    "src/@{package}/__init__.py": "gem/init.py",
    "src/@{package}/py.typed": "gem/py.typed",
    "src/@{package}/@{kind}.py": "@{kind}/@{kind}.py",
    "tests/test_@{kind}.py": "@{kind}/test_@{kind}.py",
    "tests/test_conformance.py": "@{kind}/test_conformance.py",
    ".gitignore": "gem/gitignore",
    ".github/workflows/ci.yml": "gem/ci.yml",
}
_OF_SOURCES = {
    "src/@{package}/queue.py": "source/queue.py",
    "src/@{package}/reader.py": "source/reader.py",
}
_OF_TARGETS = {"src/@{package}/table.py": "target/table.py"}


@dataclass(frozen=True)
class Tree:
    """What is going to be written.

    Args:
        folder: The name of the folder that holds everything.
        texts: The files' contents, by their paths in it.
    """

    folder: str
    texts: Mapping[str, str]


def project_tree(names: ProjectNames) -> Tree:
    """The files of a project with a pipeline, some data, and a test."""
    return _tree("project/", _PROJECT, names.folder, asdict(names))


def gem_tree(names: GemNames) -> Tree:
    """The files of a distribution with one gem and its tests."""
    values = {
        "kind": names.kind,
        "name": names.name,
        "package": names.package,
        "distribution": names.distribution,
        "stem": names.stem,
        "class": f"{names.stem}{names.kind.capitalize()}",
        "dependencies": ", ".join(f'"{found}"' for found in _dependencies(names.kind)),
        "line_length": str(LINE_LENGTH),
    }
    more = {"source": _OF_SOURCES, "target": _OF_TARGETS}.get(names.kind, {})
    return _tree("", {**_GEM, **more}, names.folder, values)


def _dependencies(kind: str) -> list[str]:
    """What the distribution needs; Spark hands rows to Python data sources through pyarrow."""
    return [f"gem-bundle>={_version()}", *(["pyarrow>=18"] if kind == "source" else [])]


def _version() -> str:
    """The major and minor version of gem-bundle, which is what is relied on."""
    return ".".join(version("gem-bundle").split(".")[:2])


def _tree(under: str, templates: Mapping[str, str], folder: str, values: dict[str, Any]) -> Tree:
    values = {**values, "gem_bundle": _version()}

    def filled(text: str) -> str:
        return _PLACEHOLDER.sub(lambda found: values[found[1]], text)

    root = files("gem_bundle.scaffold") / "templates"
    return Tree(
        folder,
        {
            filled(path): filled((root / f"{under}{filled(template)}.tmpl").read_text(encoding="utf-8"))
            for path, template in templates.items()
        },
    )
