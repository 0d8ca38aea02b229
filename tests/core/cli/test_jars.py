"""`gem-bundle jars`: what a pipeline needs beside Spark, from a repository that the test writes."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname
from zipfile import ZipFile

import pytest

from tests.core.cli.conftest import ACME, PIPELINE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.cli.conftest import Cli, Installer


def publish(repository: Path, coordinate: str, *needs: str) -> None:
    """Put an artifact into a Maven repository."""
    group, artifact, version = coordinate.split(":")
    place = repository / group.replace(".", "/") / artifact / version
    place.mkdir(parents=True)
    dependencies = "".join(
        f"<dependency><groupId>{g}</groupId><artifactId>{a}</artifactId><version>{v}</version></dependency>"
        for g, a, v in (need.split(":") for need in needs)
    )
    (place / f"{artifact}-{version}.pom").write_text(
        f"<project><modelVersion>4.0.0</modelVersion><groupId>{group}</groupId>"
        f"<artifactId>{artifact}</artifactId><version>{version}</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )
    with ZipFile(place / f"{artifact}-{version}.jar", "w") as jar:
        jar.writestr("what", coordinate)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of the only repository there is; the cache is empty."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GEM_BUNDLE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "repository"
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", folder.as_uri())
    publish(folder, "com.acme:orders_2.13:1.0", "com.acme:wire:3.0")
    publish(folder, "com.acme:orders_2.13:1.1", "com.acme:wire:3.0")
    publish(folder, "com.acme:wire:3.0")
    return folder.as_uri()


@pytest.mark.spark
@pytest.mark.usefixtures("acme")
def test_each_jar_says_who_needs_it_and_where_it_came_from(
    cli: Cli, project: Callable[..., Path], repository: str, tmp_path: Path
) -> None:
    project()
    result = cli("jars", "orders.yaml")
    assert result.exit_code == 0
    assert result.stderr.startswith("Resolving orders_2.13")
    head, orders, wire, kept = result.stdout.splitlines()
    assert head.startswith("orders.yaml: 2 jars, ")
    assert orders.split()[0] == "com.acme:orders_2.13:1.0"
    assert orders.endswith(" kB  for `incoming`")
    assert wire.split()[0] == "com.acme:wire:3.0"
    assert wire.endswith(" kB  for orders_2.13")
    assert kept == f"They came from {repository} and are kept in {tmp_path / 'cache/jars/files'}."
    assert cli("jars", "orders.yaml").stderr == ""


@pytest.mark.spark
@pytest.mark.usefixtures("acme")
def test_as_json_with_an_overridden_version(cli: Cli, project: Callable[..., Path], repository: str) -> None:
    project()
    project("gem-bundle.toml", '[jars.overrides]\n"com.acme:orders_2.13" = "1.1"\n')
    orders, wire = json.loads(cli("jars", "orders.yaml", "--format", "json", "--quiet").stdout)
    path = Path(orders["path"])
    content = path.read_bytes()
    assert orders == {
        "coordinate": "com.acme:orders_2.13:1.1",
        "nodes": ["incoming"],
        "project": False,
        "needed_by": [],
        "overridden": True,
        "origin": repository,
        "cached": False,
        "path": str(path),
        "sha256": sha256(content).hexdigest(),
        "size": len(content),
    }
    assert (wire["nodes"], wire["needed_by"]) == ([], ["com.acme:orders_2.13:1.1"])
    result = cli("jars", "orders.yaml")
    assert "for `incoming`, version from the project's settings\n" in result.stdout


@pytest.mark.spark
@pytest.mark.usefixtures("acme")
def test_a_project_asks_for_jars_and_leaves_some_out(
    cli: Cli, project: Callable[..., Path], repository: str
) -> None:
    folder = Path(url2pathname(urlsplit(repository).path))
    publish(folder, "com.acme:store:2.0", "com.acme:huge:9.0", "com.acme:small:1.0")
    publish(folder, "com.acme:huge:9.0")
    publish(folder, "com.acme:small:1.0")
    project()
    project("gem-bundle.toml", '[jars]\npackages = ["com.acme:store:2.0"]\nexclude = ["com.acme:huge"]\n')
    result = cli("jars", "orders.yaml")
    _, orders, store, small, wire, _ = result.stdout.splitlines()
    assert orders.endswith("for `incoming`")
    assert store.split()[0] == "com.acme:store:2.0"
    assert store.endswith("for the project")
    assert small.endswith("for store")
    assert wire.endswith("for orders_2.13")
    rows = json.loads(cli("jars", "orders.yaml", "--format", "json").stdout)
    assert [row["coordinate"] for row in rows if row["project"]] == ["com.acme:store:2.0"]


@pytest.mark.spark
@pytest.mark.usefixtures("acme", "repository")
def test_several_repositories(cli: Cli, project: Callable[..., Path], tmp_path: Path) -> None:
    project()
    ours = tmp_path / "ours"
    publish(ours, "com.acme:wire:4.0")
    project(
        "gem-bundle.toml",
        f"[jars]\nrepositories = ['{ours.as_uri()}']\noverrides = {{'com.acme:wire' = '4.0'}}\n",
    )
    orders, wire = cli("jars", "orders.yaml").stdout.splitlines()[1:3]
    assert orders.endswith(f"from {(tmp_path / 'repository').as_uri()}")
    assert wire.split()[0] == "com.acme:wire:4.0"
    assert wire.endswith(f"for orders_2.13, version from the project's settings  from {ours.as_uri()}")


@pytest.mark.spark
@pytest.mark.usefixtures("repository")
def test_a_jar_that_nobody_has(
    cli: Cli, project: Callable[..., Path], install: Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("acme", ACME.replace("orders_{scala}:1.0", "orders_{scala}:2.0"))
    monkeypatch.setenv("GEM_BUNDLE_PLUGINS", "acme")
    project()
    result = cli("jars", "orders.yaml", "--quiet")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error[GB502]: no repository has `com.acme:orders_2.13:2.0`")
    assert "gem-bundle.toml" in result.stderr


def test_a_pipeline_that_needs_none(
    cli: Cli, project: Callable[..., Path], install: Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("acme", ACME.replace('return ["com.acme:orders_{scala}:1.0"]', "return []"))
    monkeypatch.setenv("GEM_BUNDLE_PLUGINS", "acme")
    project()
    result = cli("jars", "orders.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "orders.yaml: needs no jars beside Spark's own\n"
    assert cli("jars", "orders.yaml", "--format", "json").stdout == "[]\n"


@pytest.mark.usefixtures("acme")
def test_a_pipeline_with_errors(cli: Cli, project: Callable[..., Path]) -> None:
    project(text=PIPELINE.replace("input: incoming", "input: incomming"))
    result = cli("jars", "orders.yaml", "--format", "json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[GB101]" in result.stderr


@pytest.mark.usefixtures("acme")
def test_wrong_settings(cli: Cli, project: Callable[..., Path]) -> None:
    project()
    project("gem-bundle.toml", "[jar]\n")
    result = cli("jars", "orders.yaml")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "gem-bundle.toml:1:2: error[GB018]" in result.stderr
