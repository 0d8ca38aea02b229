"""There is one way through the modules: none leads back to where it began.

Imports inside functions count, and so do those that only type checkers follow: both tie two files together
for whoever reads one of them or moves it, and there is none that a circle couldn't be mended without.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [ROOT / "core", ROOT / "gems", ROOT / "bundles"]
PACKAGES = sorted(file.parent.name for source in SOURCES for file in source.glob("*/__init__.py"))

Edges = Mapping[str, set[str]]


def circles(edges: Edges) -> Iterator[list[str]]:
    """For each knot one of the shortest ways from a member back to itself."""
    seen: set[str] = set()
    for name in sorted(edges):
        way = [] if name in seen else way_back(edges, name)
        if way:
            seen.update(way)
            yield way


def way_back(edges: Edges, name: str) -> list[str]:
    before: dict[str, str] = {}
    waiting = deque([name])
    while waiting:
        here = waiting.popleft()
        for there in sorted(edges[here] - before.keys()):
            before[there] = here
            waiting.append(there)
        if name in before:
            way = [name, before[name]]
            while way[-1] != name:
                way.append(before[way[-1]])
            return way[::-1]
    return []


def of_files(graph: grimp.ImportGraph) -> Edges:
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def of_folders(graph: grimp.ImportGraph, package: str) -> Edges:
    """What stands in a package side by side, each folder as one, and what imports what."""
    home = {child: child for child in graph.find_children(package)}
    home |= {module: child for child in set(home) for module in graph.find_descendants(child)}
    edges: dict[str, set[str]] = {child: set() for child in home.values()}
    for module, child in home.items():
        imported = graph.find_modules_directly_imported_by(module)
        edges[child] |= {home[other] for other in imported & home.keys()} - {child}
    return edges


def told(graph: grimp.ImportGraph, way: list[str], sources: list[Path]) -> str:
    """The import lines of a circle, each with its file."""
    lines = [f"{len(way) - 1} files import each other in a circle; move down what they share:"]
    for importer, imported in pairwise(way):
        lines += [
            f"{file_of(importer, sources)}:{found['line_number']}: {found['line_contents']}"
            for found in graph.get_import_details(importer=importer, imported=imported)
        ]
    return "\n  ".join(lines)


def file_of(module: str, sources: list[Path]) -> str:
    for source in sources:
        base = source / module.replace(".", "/")
        for file in (base.with_suffix(".py"), base / "__init__.py"):
            if file.is_file():
                return file.relative_to(source.parent).as_posix()
    raise LookupError(module)


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def test_no_files_import_each_other_in_a_circle(graph: grimp.ImportGraph) -> None:
    assert {"gem_bundle", "gem_bundler", "gem_file"} <= set(PACKAGES)
    found = [told(graph, way, SOURCES) for way in circles(of_files(graph))]
    assert not found, "\n".join(found)


def test_no_folders_import_each_other_in_a_circle(graph: grimp.ImportGraph) -> None:
    packages = sorted(module for module in graph.modules if graph.find_children(module))
    found = [" -> ".join(way) for package in packages for way in circles(of_folders(graph, package))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "from acme.b import x",
        "import acme.b",
        "from acme import b",
        "from .b import x",
        "def f():\n    from acme.b import x",
        "class C:\n    def f(self):\n        import acme.b",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from acme.b import x",
        "try:\n    from acme.b import x\nexcept ImportError:\n    pass",
    ],
)
def test_the_rules_see_a_circle(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "__init__": "",
        "a": text,
        "b": "import json\nimport acme.c.more\n",
        "c/__init__": "x = 1\n",
        "c/more": "\n\nfrom acme.a import f\n",
        "d": "import acme.a\n",
    }
    for name, content in files.items():
        file = tmp_path / f"acme/{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    graph = grimp.build_graph("acme", cache_dir=None)
    (way,) = circles(of_files(graph))
    said = told(graph, way, [tmp_path]).replace(f"{tmp_path.name}/", "")
    number, line = next((n, line) for n, line in enumerate(text.splitlines(), 1) if re.search(r"\bb\b", line))
    assert said.splitlines() == [
        "3 files import each other in a circle; move down what they share:",
        f"  acme/a.py:{number}: {line.strip()}",
        "  acme/b.py:2: import acme.c.more",
        "  acme/c/more.py:3: from acme.a import f",
    ]
    assert list(circles(of_folders(graph, "acme"))) == [["acme.a", "acme.b", "acme.c", "acme.a"]]


def test_the_rules_let_one_way_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in {
        "__init__": "",
        "a": "from acme import b, c",
        "b": "import acme.c",
        "c": "",
    }.items():
        file = tmp_path / f"acme/{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    graph = grimp.build_graph("acme", cache_dir=None)
    assert not list(circles(of_files(graph)))
