"""What the tests of the command line share: a runner, pipeline files, plugins installed for one test."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Protocol

import pytest
from click.testing import CliRunner

from gem_bundle.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from click.testing import Result

# A family of gems as somebody else would write it, with one of everything that can be described.
ACME = '''
from typing import Literal

from gem_bundle import (
    Facts, Field, Finding, GemError, Options, Source, SourceSemantics, Target, TargetSemantics, Transform, hookimpl
)
from gem_bundle.types import BrokerList, DataPath, Duration, Expression, SecretStr
from pydantic import BaseModel


class Window(BaseModel):
    column: str = Field(description="The time.")
    duration: Duration = Field("1 minute", description="How long.")


class OrdersOptions(Options):
    brokers: BrokerList = Field(description="Whom to ask.", spark="acme.bootstrap.servers")
    max_rows: int | None = Field(None, gt=0, le=1000, description="Rows at most.", examples=[10])
    start: Literal["earliest", "latest"] | dict[str, int] = Field("latest", description="Where to begin.")
    password: SecretStr | None = Field(None, description="The password.")
    buffer: float = Field(0.5, ge=0, description="For the brave.", advanced=True, since="4.1", passed=False)


class OrdersSource(Source[OrdersOptions]):
    """Read orders | from Acme.

    Acme keeps ``orders`` for
    seven days.
    """

    semantics = SourceSemantics(replayable=True, condition="as long as Acme keeps them")
    example = {"brokers": ["acme:9092"], "max_rows": 10}

    def jars(self):
        return ["com.acme:orders_{scala}:1.0"]

    def check(self):
        if self.options.max_rows == 13:
            yield Finding("ACME013", "thirteen is unlucky", "Take twelve.", "max_rows", "warning")
        if self.options.max_rows == 14:
            yield Finding("GB103", "fourteen is noted", severity="note")

    def connect(self):
        if self.options.password:
            value = self.options.password.get_secret_value()
            raise GemError("GB503", f"acme:9092 refuses the password {value}", "Ask Acme.", "brokers")
        return ()


class RouteOptions(Options):
    window: Window | None = Field(None, description="A window.")
    keys: list[Expression] = Field([], description="By what.")


class RouteTransform(Transform[RouteOptions]):
    """Send rows to one of two outputs."""

    inputs = (1, None)
    example = {"keys": ["a\\nb"]}

    def outputs(self):
        return ("good", "bad")


class OrdersTarget(Target):
    """Send orders to Acme."""

    semantics = TargetSemantics(output_modes=frozenset({"append"}), delivery="exactly_once", condition="with keys")


@hookimpl
def gem_bundle_register_gems(register):
    register("source", "orders", "acme_gems:OrdersSource")
    register("transform", "route", "acme_gems:RouteTransform")
    register("target", "orders", "acme_gems:OrdersTarget")
'''

PIPELINE = """
pipeline: orders
parameters: {rows: 10}
sources:
  incoming:
    gem: orders
    options: {brokers: "acme:9092", max_rows: "${rows}"}
targets:
  out: {gem: orders, input: incoming}
"""


class Cli(Protocol):
    """Runs `gem-bundle` in this process."""

    def __call__(self, *arguments: str | Path, color: bool = False) -> Result: ...


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`gem-bundle`, at a place without colours of its own."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    def invoke(*arguments: str | Path, color: bool = False) -> Result:
        result = CliRunner().invoke(main, [str(a) for a in arguments], prog_name="gem-bundle", color=color)
        assert "Traceback" not in result.output or "--debug" in arguments
        return result

    return invoke


class Installer(Protocol):
    """Installs a distribution with one plugin, for the duration of a test."""

    def __call__(self, plugin: str, code: str, version: str = "1.0") -> None: ...


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installer]:
    """Install a plugin as pip would: a module, and the metadata with its entry point."""
    site = tmp_path / "site-packages"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    installed = []

    def install_plugin(plugin: str, code: str, version: str = "1.0") -> None:
        module = f"{plugin}_gems"
        installed.append(module)
        (site / f"{module}.py").write_text(code)
        info = site / f"{module}-{version}.dist-info"
        info.mkdir()
        name = module.replace("_", "-")
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[gem_bundle]\n{plugin} = {module}\n")
        importlib.invalidate_caches()

    yield install_plugin
    for module in installed:
        sys.modules.pop(module, None)


@pytest.fixture
def acme(install: Installer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gems of Acme, and no others."""
    install("acme", ACME, version="2.1")
    monkeypatch.setenv("GEM_BUNDLE_PLUGINS", "acme")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes files into an empty folder, which is the current one and has no settings above it."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("GEM_BUNDLE_SETTINGS", raising=False)

    def write(name: str = "orders.yaml", text: str = PIPELINE) -> Path:
        (folder / name).write_text(text)
        return folder / name

    return write
