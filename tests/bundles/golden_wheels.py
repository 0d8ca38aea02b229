"""The kinds of bundle whose wheels are written down in ``golden/``, file by file.

After a change that is meant to change them, run ``python -m tests.bundles.golden_wheels`` and look at what
git says is different.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zipfile import ZipFile

from gem_bundler.bundle.model import GemUse
from tests.bundles.making import (
    ACME,
    CLEAN,
    DELTA,
    JOBS,
    PLUGGY,
    TICKS,
    built,
    write_files,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gem_bundler.wheels.bundle import Wheel

GOLDEN = Path(__file__).with_name("golden")
_RATE = GemUse("source", "rate", "gem-bundle", "0.1.0")
_CONSOLE = GemUse("target", "console", "gem-bundle", "0.1.0")
_SHEEP = GemUse("source", "sheep", "acme-gems", "1.0+editable")


def pipeline_only(folder: Path) -> Wheel:
    """Nothing but a pipeline file."""
    write_files(folder, {"ticks.yaml": TICKS})
    return built(folder, gems=(_RATE, _CONSOLE), requires=("gem-bundle==0.1.0",))


def one_module(folder: Path) -> Wheel:
    """A module beside the pipeline file."""
    return built(write_files(folder, {"ticks.yaml": CLEAN, "jobs.py": JOBS}))


def package(folder: Path) -> Wheel:
    """A package with a package inside it, and data."""
    files = {
        "ticks.yaml": CLEAN.replace("jobs:", "acme.jobs:"),
        "acme/__init__.py": '"""Acme\'s rules."""\n',
        "acme/jobs.py": JOBS,
        "acme/deep/__init__.py": "",
        "acme/deep/rules.py": "LIMIT = 1\n",
        "acme/words.json": "{}\n",
    }
    return built(write_files(folder, files))


def foreach_batch(folder: Path) -> Wheel:
    """A function for micro-batches, whose module imports another one."""
    text = TICKS.replace("{gem: console, input", '{gem: foreach_batch, options: {function: "save:go"}, input')
    save = "from rules import LIMIT\n\n\ndef go(df, batch_id):\n    return LIMIT\n"
    return built(write_files(folder, {"ticks.yaml": text, "save.py": save, "rules.py": "LIMIT = 1\n"}))


def two_pipelines(folder: Path) -> Wheel:
    """Two pipelines in folders, with a module of one of them."""
    tocks = TICKS.replace("pipeline: ticks", "pipeline: tocks\nmode: batch")
    write_files(folder, {"by_day/ticks.yaml": CLEAN, "by_day/jobs.py": JOBS, "by_hand/tocks.yaml": tocks})
    return built(folder, "by_day/ticks.yaml", "by_hand/tocks.yaml")


def parameters_and_secrets(folder: Path) -> Wheel:
    """Everything that is left open until the start."""
    text = """\
pipeline: ticks
version: 2.0.0rc1
description: >-
  Ticks, with a description
  over two lines: “Zählerstände”.
parameters:
  brokers: [localhost:9092]
  topic: {type: string, description: What is read.}
  lateness: .inf
profiles:
  prod: {brokers: ["b1:9092"], topic: ticks}
spark:
  spark.sql.shuffle.partitions: 8
  spark.hadoop.fs.s3a.secret.key: ${secret:s3/key}
checkpoints: s3a://state/checkpoints
sources:
  ticks:
    gem: kafka
    options:
      kafka.bootstrap.servers: ${brokers}
      subscribe: ["${topic}"]
      sslKeyPassword: ${secret:kafka/key}
targets:
  screen:
    gem: console
    input: ticks
    output_mode: update
    trigger: {processing_time: 10 seconds}
"""
    return built(write_files(folder, {"ticks.yaml": text}))


def gem_of_the_project(folder: Path) -> Wheel:
    """A gem that lives in the project, and a module of the pipeline's own."""
    plugin = (
        "from gem_bundle import hookimpl\n\n\n"
        "@hookimpl\n"
        "def gem_bundle_register_gems(register):\n"
        '    register("source", "sheep", "acme_sheep.source:Sheep")\n'
    )
    source = (
        'from gem_bundle import NoOptions, Source\n\n\nclass Sheep(Source[NoOptions]):\n    """Sheep."""\n'
    )
    files = {
        "ticks.yaml": CLEAN.replace("gem: rate", "gem: sheep"),
        "jobs.py": JOBS,
        "src/acme_sheep/__init__.py": plugin,
        "src/acme_sheep/source.py": source,
        "src/acme_sheep/py.typed": "",
        "src/acme_sheep-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme-sheep\nVersion: 1.0\n",
        "src/acme_sheep-1.0.dist-info/entry_points.txt": "[gem_bundle]\nsheep = acme_sheep\n",
    }
    with _importable(write_files(folder, files) / "src", "acme_sheep"):
        return built(folder)


def editable_plugin(folder: Path) -> Wheel:
    """A plugin that was installed in editable mode: its version says so."""
    write_files(folder, {"ticks.yaml": TICKS})
    return built(
        folder,
        gems=(_SHEEP, _CONSOLE),
        distributions=(ACME, PLUGGY),
        requires=("gem-bundle==0.1.0", "acme-gems==1.0+editable"),
        deps="deps.tar.gz",
    )


def jars(folder: Path) -> Wheel:
    """Jars that are in the bundle, and a job."""
    text = TICKS.replace("{gem: console,", "{gem: delta, options: {path: out/ticks},")
    write_files(folder, {"ticks.yaml": text})
    job = {"schedule": "0 3 * * *", "tags": {"team": "clocks"}}
    return built(folder, jars=(DELTA,), vendored=True, job=job, profile="prod")


def unusual_names(folder: Path) -> Wheel:
    """Names with what CSV and zip files need care for."""
    text = TICKS.replace("pipeline: ticks", "pipeline: a__b").replace(
        "rate}", 'rate, description: "ü, \\"ö\\""}'
    )
    return built(write_files(folder, {'Zähler, "neu"/a b.yaml': text}), 'Zähler, "neu"/a b.yaml')


KINDS: dict[str, Callable[[Path], Wheel]] = {
    kind.__name__: kind
    for kind in (
        pipeline_only,
        one_module,
        package,
        foreach_batch,
        two_pipelines,
        parameters_and_secrets,
        gem_of_the_project,
        editable_plugin,
        jars,
        unusual_names,
    )
}


def make(kind: str) -> Wheel:
    """The wheel of a kind, built in a folder of its own."""
    with TemporaryDirectory() as folder:
        return KINDS[kind](Path(folder))


def written(wheel: Wheel) -> str:
    """A wheel as a text: its name, then each file with its mode and, where the build wrote it, its contents."""
    lines = [wheel.name]
    with ZipFile(BytesIO(wheel.data)) as archive:
        for info in archive.infolist():
            lines += ["", f"=== {info.filename} {info.external_attr >> 16:o}"]
            own = f"{wheel.manifest.package}/"
            if info.filename.startswith(own) or ".dist-info/" in info.filename:
                lines += archive.read(info).decode().splitlines()
    return "\n".join(lines) + "\n"


@contextmanager
def _importable(folder: Path, package: str) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in [n for n in sys.modules if n.partition(".")[0] == package]:
            del sys.modules[name]


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name in KINDS:
        (GOLDEN / f"{name}.txt").write_text(written(make(name)), encoding="utf-8")
