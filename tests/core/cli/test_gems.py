"""`gem-bundle gems`: everything that is installed, and everything that is broken."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.core.cli.conftest import Cli, Installer

HALF = """
from gem_bundle import hookimpl

@hookimpl
def gem_bundle_register_gems(register):
    register("source", "lost", "half_gems:Lost")
    register("target", "orders", "half_gems:Orders")
"""


@pytest.mark.usefixtures("acme")
def test_kind_name_distribution_and_summary(cli: Cli) -> None:
    result = cli("gems")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "KIND       NAME    DISTRIBUTION   SUMMARY",
        "source     orders  acme-gems 2.1  Read orders | from Acme.",
        "transform  route   acme-gems 2.1  Send rows to one of two outputs.",
        "target     orders  acme-gems 2.1  Send orders to Acme.",
    ]


@pytest.mark.usefixtures("acme")
def test_as_json(cli: Cli) -> None:
    found = json.loads(cli("gems", "--format", "json", "--kind", "source").stdout)
    assert found == {
        "gems": [
            {
                "kind": "source",
                "name": "orders",
                "summary": "Read orders | from Acme.",
                "distribution": "acme-gems",
                "version": "2.1",
                "plugin": "acme",
                "error": None,
            }
        ],
        "broken_plugins": [],
        "duplicates": [],
    }


@pytest.mark.usefixtures("acme")
def test_some_of_them(cli: Cli) -> None:
    lines = cli("gems", "route").stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["NAME", "route"]
    lines = cli("gems", "orders", "--kind", "target").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["KIND", "target"]


@pytest.mark.usefixtures("acme")
def test_a_name_that_does_not_exist(cli: Cli) -> None:
    result = cli("gems", "order")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "There is no gem `order`. Did you mean `orders`?" in result.stderr
    assert "There is no source gem `route`." in cli("gems", "route", "--kind", "source").stderr


def test_a_plugin_that_cannot_be_imported_is_named(
    cli: Cli, install: Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("bad", "import no_such_module", version="0.3")
    monkeypatch.setenv("GEM_BUNDLE_PLUGINS", "bad,rate")
    result = cli("gems")
    assert result.exit_code == 0
    assert "Generate rows" in result.stdout
    assert (
        "warning: The plugin `bad` of `bad-gems 0.3` can't be loaded: "
        "ModuleNotFoundError: No module named 'no_such_module'" in result.stdout
    )
    (broken,) = json.loads(cli("gems", "--format", "json").stdout)["broken_plugins"]
    assert broken == {
        "plugin": "bad",
        "distribution": "bad-gems",
        "version": "0.3",
        "error": "ModuleNotFoundError: No module named 'no_such_module'",
    }


def test_a_gem_that_cannot_be_loaded_stops_no_other(
    cli: Cli, install: Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("half", HALF)
    monkeypatch.setenv("GEM_BUNDLE_PLUGINS", "half,rate")
    result = cli("gems")
    assert result.exit_code == 0
    assert "can't be loaded, see below" in next(x for x in result.stdout.splitlines() if "lost" in x)
    assert "2 problems" in result.stdout
    assert "AttributeError: module 'half_gems' has no attribute 'Lost'" in result.stdout
    assert "Generate rows" in result.stdout


@pytest.mark.usefixtures("acme")
def test_two_owners_of_one_gem_are_both_named(
    cli: Cli, install: Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("half", HALF)
    monkeypatch.setenv("GEM_BUNDLE_PLUGINS", "half,acme")
    stdout = cli("gems").stdout
    assert (
        "The target gem `orders` is registered by `acme-gems 2.1` (plugin `acme`) and "
        "`half-gems 1.0` (plugin `half`)." in stdout
    )
    assert "GEM_BUNDLE_DISABLE_PLUGINS=half" in stdout
    (duplicate,) = json.loads(cli("gems", "--format", "json").stdout)["duplicates"]
    assert "`orders`" in duplicate["message"]


def test_no_gems(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEM_BUNDLE_PLUGINS", "none_of_them")
    assert cli("gems").stdout == (
        "No gems are installed.\n\n1 problem\n"
        "  warning: The plugin `none_of_them` of `GEM_BUNDLE_PLUGINS` can't be loaded: there is no such plugin\n"
    )


def test_the_built_in_gems_come_from_this_distribution(cli: Cli) -> None:
    found = json.loads(cli("gems", "--format", "json", "rate").stdout)["gems"]
    assert [(gem["distribution"], gem["version"]) for gem in found] == [("gem-bundle", version("gem-bundle"))]
