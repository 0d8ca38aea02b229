"""Measure gem-bundle's speed and write it down; `scripts/bench` calls this."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks import (
    commands,
    databases,
    declared_tests,
    engine,
    groups,
    limits,
    merging,
    pages,
    plugins,
    scale,
    serving,
    start,
    stopping,
)
from tests.benchmarks.report import DOCS, README, falls_short, markdown, with_table
from tests.benchmarks.timing import Comparison

Benchmark = Callable[[int, Path], Comparison | str]
# Name, what measures it, and how many pairs: the cheaper one is, the more, because short times are
# the noisier ones.
BENCHMARKS: dict[str, tuple[Benchmark, int]] = {
    "help": (lambda pairs, _: commands.help_text(pairs), 21),
    "check": (commands.check, 21),
    "check-1000": (commands.check_many, 9),
    "plan": (commands.plan, 9),
    "held": (commands.held, 9),
    "plugins-help": (plugins.help_text, 21),
    "plugins-check": (plugins.check, 21),
    "long-chain": (limits.chain, 9),
    "hostile-files": (limits.hostile_files, 5),
    "limits": (limits.limits, 5),
    "hostile-expressions": (limits.hostile_expressions, 9),
    "expressions": (limits.expressions, 9),
    "deep-graph": (limits.graph, 9),
    "diamonds": (limits.diamonds_in_a_row, 9),
    "bombs": (limits.bombs, 9),
    "new": (commands.new, 9),
    "broker-away": (commands.broker_away, 5),
    "dry-run": (commands.dry_run, 5),
    "build-thin": (commands.build_thin, 9),
    "build": (commands.build, 5),
    "overhead": (engine.overhead, 9),
    "small-batches": (engine.small_batches, 5),
    "group": (groups.four_tables, 5),
    "group-python": (groups.with_python, 5),
    "group-of-one": (groups.alone, 9),
    "no-rules": (groups.without, 9),
    "counted-rows": (groups.counted, 9),
    "expect": (groups.rules, 9),
    "expect-parquet": (groups.rules_over_parquet, 9),
    "start": (start.run, 5),
    "start-cold": (start.cold, 5),
    "start-cold-preview": (start.cold_preview, 5),
    "start-cold-test": (start.cold_test, 5),
    "start-preview": (start.preview, 5),
    "start-test": (start.test, 5),
    "serve": (serving.alone, 5),
    "serve-crowd": (serving.crowded, 5),
    "stop": (stopping.stop, 5),
    "page": (pages.first_picture, 9),
    "step-stateful": (declared_tests.stateful, 9),
    "step-stateless": (declared_tests.stateless, 9),
    "fifty-tests": (declared_tests.fifty, 5),
    "scale-files-python": (scale.files_python, 5),
    "scale-files": (scale.files_sql, 5),
    "scale-kafka-python": (scale.kafka_python, 5),
    "scale-kafka": (scale.kafka_sql, 5),
    "jdbc": (databases.append, 5),
    "merge": (merging.merge, 5),
}
NO_JVM = (
    *("help", "check", "check-1000", "plan", "held", "plugins-help", "plugins-check"),
    *("long-chain", "hostile-files", "limits", "hostile-expressions", "expressions"),
    *("deep-graph", "diamonds", "bombs", "new"),
)
# As many pairs as a first look takes, and a bound takes that is kept with room to spare.
FEW = 5


def main() -> int:
    """Measure what is asked for; 1 when a bound is broken."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=(__doc__ or "").partition(";")[0])
    parser.add_argument(
        "--quick", action="store_true", help="only what needs no JVM, and write nothing: for a first look"
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing, and end with the rows that break their bounds"
    )
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, metavar="NAME", help="; ".join(BENCHMARKS))
    options = parser.parse_args()
    names = options.only or (NO_JVM if options.quick else tuple(BENCHMARKS))

    found: list[Comparison] = []
    remarks: list[str] = []
    for name in names:
        measure, pairs = BENCHMARKS[name]
        pairs = min(FEW, pairs) if options.quick or options.check else pairs
        print(f"{name}: {pairs} pairs …", file=sys.stderr, flush=True)
        with TemporaryDirectory(prefix="gem-bundle-bench-") as folder:
            result = measure(pairs, Path(folder) / name)
        if isinstance(result, str):
            remarks.append(result)
            print(f"  {result}", file=sys.stderr)
            continue
        found.append(result)
        print(
            f"  {result.value:.3g} {result.unit} ({result.rule}): {'holds' if result.holds else 'BROKEN'}",
            file=sys.stderr,
        )

    print(markdown(found, remarks, machine()))
    broken = [comparison for comparison in found if not comparison.holds]
    if not options.quick and not options.check:
        found, remarks = with_earlier(found, remarks)
        DOCS.mkdir(exist_ok=True)
        record = {"machine": machine(), "comparisons": [asdict(c) for c in found], "remarks": remarks}
        (DOCS / "benchmarks.json").write_text(json.dumps(record, indent=2) + "\n")
        (DOCS / "benchmarks.md").write_text(markdown(found, remarks, machine()))
        README.write_text(with_table(README.read_text(), found))
    for comparison in broken:
        print(f"BROKEN {comparison.name}: {falls_short(comparison)}", file=sys.stderr)
    return 1 if broken else 0


def with_earlier(found: list[Comparison], remarks: list[str]) -> tuple[list[Comparison], list[str]]:
    """What was measured now, with what the record has of benchmarks that were not run this time."""
    file = DOCS / "benchmarks.json"
    record = json.loads(file.read_text()) if file.exists() else {"comparisons": [], "remarks": []}
    now = {comparison.name for comparison in found}
    kept = [Comparison(**c) for c in record["comparisons"] if c["name"] not in now]
    order = list(BENCHMARKS)
    both = sorted([*kept, *found], key=lambda comparison: order.index(comparison.name))
    return both, list(dict.fromkeys([*record["remarks"], *remarks]))


def machine() -> dict[str, str]:
    """What the numbers depend on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cores": str(cores),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "pyspark": version("pyspark"),
        "delta-spark": version("delta-spark"),
    }


if __name__ == "__main__":
    raise SystemExit(main())
