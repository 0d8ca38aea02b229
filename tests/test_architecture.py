"""`docs/architecture.md` is what the contracts and the code say: its picture, its names, its walk."""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import CodeType, FrameType

    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "architecture.md"
PAGE = FILE.read_text(encoding="utf-8")
CORE = ROOT / "core" / "gem_bundle"
DRAWN = re.compile(r"(?<=```text\n)(.*?)(?=\n```)", re.S)
PIPELINE = """\
pipeline: walk
parameters: {least: 2}
sources:
  numbers: {gem: file, options: {path: in, format: json, schema: "id bigint"}}
transforms:
  some: {gem: filter, input: numbers, options: {condition: "id >= ${least}"}}
targets:
  out: {gem: file, input: some, trigger: {available_now: true}, options: {path: out, format: json}}
"""


def picture() -> str:
    """The layers as the contract of import-linter has them, each module with the first line of its docstring."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(contract for contract in settings["contracts"] if contract["id"] == "layers")["layers"]
    gems = [package for package in settings["root_packages"] if package not in {"gem_bundle", "gem_bundler"}]
    others = in_columns(gems)
    lines = ["    " + "".join(others[at : at + 5]).rstrip() for at in range(0, len(others), 5)]
    blocks = ["\n".join([*lines, f"    gem_bundler  {first_line(ROOT / 'bundles/gem_bundler')}"])]
    wide = len(in_columns(name.strip() for layer in layers for name in layer.split("|"))[0])
    for number, layer in enumerate(layers, 1):
        members = [name.strip() for name in layer.split("|")]
        told = [f"{name:<{wide}}{first_line(CORE / name)}" for name in members]
        blocks.append("\n".join(f"{number if n == 0 else '':>2}  {line}" for n, line in enumerate(told)))
    rule = "-" * 100
    return f"\n{rule}\n".join(blocks)


def in_columns(names: Iterable[str]) -> list[str]:
    """Names made as long as the longest, with room behind."""
    names = list(names)
    wide = max(len(name) for name in names) + 2
    return [f"{name:<{wide}}" for name in names]


def first_line(module: Path) -> str:
    file = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    assert text is not None
    return text.splitlines()[0].replace("``", "`")


def named(name: str) -> Any:
    """What a dotted name means: a module, or something in one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            found = inspect.getattr_static(found, part)
        return found
    raise LookupError(name)


def code_of(found: Any) -> CodeType:
    function = getattr(found, "callback", None) or getattr(found, "fget", None) or found
    code: CodeType = inspect.unwrap(function).__code__
    return code


def walk() -> list[str]:
    """The steps of the page, each by what it begins with."""
    return re.findall(r"^\d+\. `([\w.]+)`", PAGE, re.M)


def test_the_picture_is_the_contract() -> None:
    (drawn,) = DRAWN.findall(PAGE)
    families = {folder.parent.name for folder in (ROOT / "gems").glob("gem_*/__init__.py")}
    assert families - set(drawn.split()) == set()
    assert drawn == picture(), "draw the picture anew: python -m tests.test_architecture"


def test_what_the_page_names_is_there() -> None:
    names = set(re.findall(r"`(gem_(?:bundle|bundler)(?:\.\w+)*)`", PAGE))
    assert len(names) > 30
    for name in sorted(names):
        named(name)
    paths = set(
        re.findall(r"`((?:core|gems|bundles|tests|docs|scripts|examples)/[\w/.-]*|pyproject\.toml)`", PAGE)
    )
    assert len(paths) > 5
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


@pytest.mark.spark
def test_a_run_goes_the_way_of_the_page(
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text("".join(json.dumps({"id": n}) + "\n" for n in range(5)))
    (tmp_path / "walk.yaml").write_text(PIPELINE)
    steps = {code_of(named(name)): name for name in walk()}
    assert len(steps) > 15
    met: list[str] = []

    def look(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code in steps and steps[frame.f_code] not in met:
            met.append(steps[frame.f_code])

    sys.setprofile(look)
    try:
        main(["run", str(tmp_path / "walk.yaml"), "--quiet"], standalone_mode=False)
    finally:
        sys.setprofile(None)
    assert met == walk()
    written = [file.read_text() for file in (tmp_path / "out").glob("*.json")]
    rows = [json.loads(line) for text in written for line in text.splitlines()]
    assert sorted(row["id"] for row in rows) == [2, 3, 4]


if __name__ == "__main__":
    FILE.write_text(DRAWN.sub(lambda _: picture(), PAGE), encoding="utf-8")
