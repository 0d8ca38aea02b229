"""What installed plugins cost that a command doesn't use."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.benchmarks.timing import Comparison, command_seconds, in_turn

PLUGINS = 200
SECONDS_A_PLUGIN = 0.0008
GEM_BUNDLE = Path(sys.executable).with_name("gem-bundle")

PIPELINE = """
pipeline: one_of_many
sources:
  rows: {gem: dummy_0, options: {rows: 10}}
targets:
  nowhere: {gem: noop, input: rows}
"""
_REGISTRATION = '''"""A plugin with one gem."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register the gem."""
    register("source", "dummy_{number}", "gem_dummy_{number}.source:DummySource")
'''
_GEM = '''"""The gem."""

from gem_bundle import Field, Options, Source, SourceSemantics


class DummyOptions(Options):
    """Options."""

    rows: int = Field(1, gt=0, description="How many rows.")
    {more}


class DummySource(Source[DummyOptions]):
    """Make rows."""

    semantics = SourceSemantics(backlog=False)
    example = {{"rows": 10}}

    def read_stream(self, context):
        """Rows."""
        return context.reader.format("rate").option("rowsPerSecond", self.options.rows).load()
'''
_MORE = "\n    ".join(f'more_{n}: str = Field("", description="Another option.")' for n in range(8))


def install(folder: Path, plugins: int) -> Path:
    """Install plugins with one gem each, as pip would.

    Args:
        folder: A folder to put on Python's path.
        plugins: How many plugins.
    """
    for number in range(plugins):
        name = f"gem_dummy_{number}"
        _install(folder, name, f"[gem_bundle]\ndummy_{number} = {name}\n")
        (folder / name / "__init__.py").write_text(_REGISTRATION.format(number=number))
        (folder / name / "source.py").write_text(_GEM.format(more=_MORE))
    return folder


def _install(folder: Path, name: str, entry_points: str) -> None:
    (folder / name).mkdir(parents=True)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    text = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n"
    (info / "METADATA").write_text(text)
    (info / "entry_points.txt").write_text(entry_points)


def help_text(pairs: int, folder: Path) -> Comparison:
    """`gem-bundle --help` beside many plugins, against the same without them."""
    plugins = install(folder / "plugins", PLUGINS)
    found = in_turn(
        lambda: command_seconds([GEM_BUNDLE, "--help"], {"PYTHONPATH": str(plugins)}),
        lambda: command_seconds([GEM_BUNDLE, "--help"], {"PYTHONPATH": ""}),
        pairs,
    )
    return found.compared(
        "plugins-help",
        f"`gem-bundle --help` with {PLUGINS} plugins installed",
        "the same without them",
        at_most=1.1,
    )


def check(pairs: int, folder: Path) -> Comparison:
    """`gem-bundle check` of a pipeline that uses one of many plugins, against the only one there is."""
    many = install(folder / "many", PLUGINS)
    one = install(folder / "one", 1)
    file = folder / "one_of_many.yaml"
    file.write_text(PIPELINE)
    found = in_turn(
        lambda: command_seconds([GEM_BUNDLE, "check", file], {"PYTHONPATH": str(many)}),
        lambda: command_seconds([GEM_BUNDLE, "check", file], {"PYTHONPATH": str(one)}),
        pairs,
    )
    return found.compared(
        "plugins-check",
        f"`gem-bundle check` of a pipeline that uses one of {PLUGINS} plugins",
        "the same with that plugin alone",
        more_seconds=PLUGINS * SECONDS_A_PLUGIN,
    )
