"""Importing the project costs no Spark: nobody pays for an engine before something runs in it."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [ROOT / "core", ROOT / "gems", ROOT / "bundles"]
FAMILIES = sorted(folder.name for folder in (ROOT / "gems").glob("gem_*") if folder.is_dir())
# Driven from functions only. Java-backed or large, and none of them needed to check a pipeline.
HEAVY = {"pyspark", "py4j", "delta", "kafka", "pandas", "numpy", "pyarrow"} | {
    # A run without `--serve` has none of them.
    "starlette",
    "uvicorn",
    "prometheus_client",
    # A run without `--lineage` hasn't got it.
    "openlineage",
}


def _modules() -> list[tuple[str, Path]]:
    found = []
    for source in SOURCES:
        for file in sorted(source.rglob("*.py")):
            parts = file.relative_to(source).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found.append((name, file))
    return found


def _imported_at_module_level(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from _imported_at_module_level(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for field in ("body", "orelse", "handlers", "finalbody", "cases"):
                yield from _imported_at_module_level(getattr(node, field, []))


@pytest.mark.parametrize("text", ["import pyspark.sql", "try:\n    from delta import x\nexcept E: pass"])
def test_the_rule_sees_an_import(text: str) -> None:
    found = {name.partition(".")[0] for _, name in _imported_at_module_level(ast.parse(text).body)}
    assert found & HEAVY


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    import pyspark",
        "if TYPE_CHECKING:\n    import pyspark",
        "class C:\n    def f(self):\n        import kafka",
    ],
)
def test_the_rule_lets_late_imports_pass(text: str) -> None:
    assert not list(_imported_at_module_level(ast.parse(text).body))


def test_no_module_imports_an_engine_or_a_client_at_its_top() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for _, file in _modules()
        for line, name in _imported_at_module_level(ast.parse(file.read_text()).body)
        if name.partition(".")[0] in HEAVY
    ]
    assert not wrong


@pytest.mark.programs
def test_importing_every_module_loads_no_engine_and_no_client() -> None:
    names = [name for name, _ in _modules() if not name.endswith("__main__")]
    code = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        f"print(*sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_the_import_contracts_know_every_gem_family() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    contracts = {contract["id"]: contract for contract in settings["contracts"]}
    core = ["gem_bundle", "gem_bundler"]
    assert settings["root_packages"] == core + FAMILIES
    assert contracts["runtime"]["forbidden_modules"] == ["gem_bundler", *FAMILIES]
    assert contracts["public-api"]["source_modules"] == FAMILIES
    assert contracts["independence"]["modules"] == FAMILIES


@pytest.mark.programs
@pytest.mark.parametrize(
    ("arguments", "most"),
    [
        (["--help"], 37),
        (["check", "--help"], 8),
        (["explain", "GB301"], 33),
        (["describe", "rate"], 27),
        (["check", "examples/flights/worst_hours.yaml"], 98),
        (["check", "examples/flights/flights.yaml"], 116),
    ],
)
def test_a_command_imports_no_more_of_the_runtime_than_it_needs(arguments: list[str], most: int) -> None:
    """What a start costs is what it imports. A command that needs more must be worth it to all its users."""
    code = (
        "import sys\n"
        "from gem_bundle.cli import main\n"
        f"main({arguments!r}, standalone_mode=False)\n"
        "print(*sorted(name for name in sys.modules if name.partition('.')[0] == 'gem_bundle'))\n"
        f"print(*sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    imported, heavy = (line.split() for line in done.stdout.splitlines()[-2:])
    assert heavy == [], "to check a pipeline takes neither Spark nor Java"
    assert len(imported) <= most, f"{len(imported)} modules: {imported}"


@pytest.mark.programs
def test_a_run_that_goes_on_as_it_was_does_without_the_rules_of_edits(tmp_path: Path) -> None:
    """Most starts are such ones; an edited pipeline imports twice as much for its look at the plan."""
    file = tmp_path / "clicks.yaml"
    file.write_text(
        "pipeline: clicks\n"
        "sources: {rows: {gem: rate}}\n"
        "transforms: {few: {gem: filter, input: rows, options: {condition: value > 1}}}\n"
        "targets: {out: {gem: delta, input: few, options: {path: out}}}\n"
    )
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from gem_bundle.changes.history import keep_versions\n"
        "from gem_bundle.changes.planning import hold_to_plan\n"
        "from gem_bundle.check import check_file\n"
        "from tests.benchmarks.commands import leave_checkpoint\n"
        f"file = Path({str(file)!r})\n"
        "def imported(*edit):\n"
        "    file.write_text(file.read_text().replace(*edit) if edit else file.read_text())\n"
        "    plan = check_file(file).plan\n"
        "    keep_versions(plan, ['out'], hold_to_plan(plan, ['out']))\n"
        "    print('gem_bundle.changes.rules' in sys.modules)\n"
        "plan = check_file(file).plan\n"
        "keep_versions(plan, ['out'], {'out': ()})\n"
        "leave_checkpoint(Path(plan.definition.checkpoint('out')))\n"
        "imported()\n"
        "imported('value > 1', 'value > 2')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["False", "True"]
