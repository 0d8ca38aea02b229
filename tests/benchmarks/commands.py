"""How long the commands take that need no JVM: against importing what they can't do without."""

import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.record import Record, write_record
from gem_bundle.check import check_file
from tests.benchmarks.pipelines import generate
from tests.benchmarks.timing import Comparison, clean_environment, command_seconds, in_turn

NODES = 100
MANY_NODES = 1000
IMPORTS = "import click, yaml, pydantic, sqlglot"
GEM_BUNDLE = Path(sys.executable).with_name("gem-bundle")
AWAY = """
pipeline: orders
sources:
  orders: {{gem: kafka, options: {{bootstrap_servers: "127.0.0.1:{port}", subscribe: orders}}}}
targets:
  out: {{gem: console, input: orders}}
"""
FLIGHTS = Path(__file__).parents[2] / "examples" / "flights" / "flights.yaml"


def help_text(pairs: int) -> Comparison:
    """`gem-bundle --help`, against the import of click."""
    found = in_turn(
        lambda: command_seconds([GEM_BUNDLE, "--help"]),
        lambda: command_seconds([sys.executable, "-c", "import click"]),
        pairs,
    )
    return found.compared("help", "`gem-bundle --help`", '`python -c "import click"`', at_most=2.5)


def check(pairs: int, folder: Path) -> Comparison:
    """`gem-bundle check` of a hundred nodes, against the import of what reads and validates them."""
    return _check(pairs, folder, "check", NODES, at_most=2.5)


def check_many(pairs: int, folder: Path) -> Comparison:
    """`gem-bundle check` of a thousand nodes, against the import of what reads and validates them."""
    return _check(pairs, folder, "check-1000", MANY_NODES, at_most=10)


def _check(pairs: int, folder: Path, name: str, nodes: int, at_most: float) -> Comparison:
    file = _pipeline(folder, nodes)
    found = in_turn(
        lambda: command_seconds([GEM_BUNDLE, "check", file]),
        lambda: command_seconds([sys.executable, "-c", IMPORTS]),
        pairs,
    )
    what = f"`gem-bundle check` of {nodes:,} nodes, with expressions and joins"
    return found.compared(name, what, f'`python -c "{IMPORTS}"`', at_most=at_most)


def plan(pairs: int, folder: Path) -> Comparison:
    """`gem-bundle plan` of an edit, each target with a checkpoint and its record, against checking the file."""
    file, targets = _having_run(folder)
    file.write_text(file.read_text().replace("cents / 100", "cents / 10"))
    found = in_turn(
        lambda: command_seconds([GEM_BUNDLE, "plan", file]),
        lambda: command_seconds([GEM_BUNDLE, "check", file]),
        pairs,
    )
    what = f"`gem-bundle plan` of {NODES} nodes, of which {targets} are targets with a checkpoint"
    return found.compared("plan", what, "`gem-bundle check` of them", at_most=1.3)


def held(pairs: int, folder: Path) -> Comparison:
    """What a run of an edited pipeline does before its start so as to hold to the plan, and to leave its record."""
    nodes = 25
    file, targets = _having_run(folder, nodes)
    records = {record: record.read_bytes() for record in folder.rglob(".*.record.json")}
    # In front of state and behind it: each lane has its edit.
    text = file.read_text()
    for old, new in (
        ("cents / 100", "cents / 10"),
        ("amount >= ", "amount > "),
        ("delay: 1 hour", "delay: 2 hours"),
    ):
        if old not in text:
            raise RuntimeError(f"the pipeline has no `{old}` any more")
        text = text.replace(old, new)
    file.write_text(text)
    begin = f"from gem_bundle.check import check_file; plan = check_file({str(file)!r}).plan; "
    begin += "names = [node.id for node in plan.definition.of_kind('target')]; "
    hold = "from gem_bundle.changes.planning import hold_to_plan; "
    hold += "from gem_bundle.changes.history import keep_versions; "
    hold += "keep_versions(plan, names, hold_to_plan(plan, names, [('GB423', '')]))"

    def looked() -> float:
        for record, content in records.items():
            record.write_bytes(content)  # else the edit would be one that has run
        return command_seconds([sys.executable, "-c", begin + hold])

    found = in_turn(looked, lambda: command_seconds([sys.executable, "-c", begin]), pairs)
    what = f"an edited pipeline's look at {targets} checkpoints and their records before its start, {nodes} nodes"
    return found.compared("held", what, "checking it only", more_seconds=0.1)


def _having_run(folder: Path, nodes: int = NODES) -> tuple[Path, int]:
    """A pipeline of which each target has a checkpoint with its record, and how many those are."""
    file = _pipeline(folder, nodes)
    checked = check_file(file).plan
    assert checked is not None
    targets = checked.definition.of_kind("target")
    for target in targets:
        place = checked.definition.checkpoint(target.id)
        leave_checkpoint(Path(place))
        write_record(place, Record(target.id, (version_of(checked, target.id),)))
    return file, len(targets)


def new(pairs: int, folder: Path) -> Comparison:
    """`gem-bundle new`, against a check of what it writes."""
    folder.mkdir()
    numbers = iter(range(10**9))

    def made() -> float:
        return command_seconds([GEM_BUNDLE, "new", f"orders-{next(numbers)}", "--quiet"], cwd=folder)

    command_seconds([GEM_BUNDLE, "new", "orders", "--quiet"], cwd=folder)
    written = folder / "orders" / "orders.yaml"
    found = in_turn(made, lambda: command_seconds([GEM_BUNDLE, "check", written]), pairs)
    return found.compared("new", "`gem-bundle new`", "`gem-bundle check` of what it wrote", at_most=1)


def broker_away(pairs: int, folder: Path) -> Comparison:
    """`gem-bundle run` where the broker is away, against `check --connect`, which says the same."""
    folder.mkdir()
    with socket.socket() as taken:
        # Nobody listens there, and nobody else takes it meanwhile.
        taken.bind(("127.0.0.1", 0))
        file = folder / "orders.yaml"
        file.write_text(AWAY.format(port=taken.getsockname()[1]))
        found = in_turn(
            lambda: command_seconds([GEM_BUNDLE, "run", file], status=1),
            lambda: command_seconds([GEM_BUNDLE, "check", "--connect", file], status=1),
            pairs,
        )
    return found.compared(
        "broker-away", "`gem-bundle run` where the broker is away", "`gem-bundle check --connect`", at_most=4
    )


def dry_run(pairs: int, folder: Path) -> Comparison | str:
    """`gem-bundle check` against Spark's own checker; a sentence where that can't be installed."""
    file = _pipeline(folder, NODES)
    packages = folder / "spark-pipelines-packages"
    problem = _install_spark_pipelines(packages)
    if problem:
        return f"`spark-pipelines` can't be installed here: {problem}"
    project = _spark_project(folder / "spark-pipelines")
    command = [Path(sys.executable).with_name("spark-pipelines"), "dry-run"]
    environment = {"PYTHONPATH": str(packages), "PYSPARK_PYTHON": sys.executable}
    found = in_turn(
        lambda: command_seconds([GEM_BUNDLE, "check", file]),
        lambda: command_seconds(command, environment, cwd=project),
        pairs,
    )
    return found.compared(
        "dry-run",
        f"`gem-bundle check` of {NODES} nodes",
        "`spark-pipelines dry-run` of as many",
        at_least=40,
    )


def build_thin(pairs: int, folder: Path) -> Comparison:
    """`gem-bundle build --thin` of the flights, against checking them."""
    return _build(pairs, folder, "build-thin", ["--thin"], more_seconds=1)


def build(pairs: int, folder: Path) -> Comparison:
    """`gem-bundle build` of the flights with their dependencies, against checking them.

    The dependencies are cached, and executors have loaded them before.
    """
    return _build(pairs, folder, "build", [], more_seconds=5)


def _build(pairs: int, folder: Path, name: str, options: list[str], more_seconds: float) -> Comparison:
    folder.mkdir(parents=True)
    file = shutil.copy(FLIGHTS, folder)
    found = in_turn(
        lambda: command_seconds([GEM_BUNDLE, "build", file, "-o", folder / "dist", "--quiet", *options]),
        lambda: command_seconds([GEM_BUNDLE, "check", file]),
        pairs,
    )
    what = " ".join(["gem-bundle build", *options])
    dependencies = "" if options else ", dependencies cached"
    return found.compared(
        name,
        f"`{what}` of `examples/flights`{dependencies}",
        "`gem-bundle check` of it",
        more_seconds=more_seconds,
    )


def _pipeline(folder: Path, nodes: int) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / "generated.yaml"
    file.write_text(generate(nodes))
    return file


def leave_checkpoint(folder: Path) -> None:
    """What Spark leaves after a micro-batch, as far as a plan looks at it."""
    for name, content in {
        "metadata": '{"id": "593617ef-6385-44dd-9a2e-f3717d7dd811"}',
        "offsets/0": "v2\n{}\nrows:-",
        "commits/0": "v1\n{}\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def _install_spark_pipelines(packages: Path) -> str:
    """Put what `spark-pipelines` needs beside pyspark into a folder of its own."""
    asked = [re.split(r"\s*;", r)[0] for r in requires("pyspark") or () if "pipelines" in r]
    missing = [requirement for requirement in asked if not _is_installed(requirement)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--target", packages, *missing],
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.strip().rpartition("\n")[2] if done.returncode else ""


def _is_installed(requirement: str) -> bool:
    try:
        version(re.split(r"[^\w.-]", requirement)[0])
    except PackageNotFoundError:
        return False
    return True


def _spark_project(folder: Path) -> Path:
    """The pipeline of `generate` as a project of Spark Declarative Pipelines: as many nodes in a row."""
    (folder / "nodes").mkdir(parents=True)
    (folder / "spark-pipeline.yml").write_text(
        f"name: hundred\nstorage: {(folder / 'storage').as_uri()}\n"
        "libraries:\n  - glob: {include: nodes/**}\n"
    )
    (folder / "nodes" / "hundred.py").write_text("\n".join(_spark_nodes()))
    return folder


def _spark_nodes() -> Iterator[str]:
    yield "from pyspark import pipelines as dp"
    yield "from pyspark.sql import SparkSession"
    yield "spark = SparkSession.active()"
    before = None
    for number in range(NODES):
        last = number == NODES - 1
        yield "@dp.table" if last else "@dp.temporary_view"
        yield f"def node_{number}():"
        if before is None:
            yield "    return spark.readStream.format('rate').load()"
        else:
            yield f"    return spark.readStream.table('{before}').where('value != {number}')"
        before = f"node_{number}"
