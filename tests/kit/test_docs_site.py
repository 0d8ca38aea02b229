"""The site of the documentation: it builds without warnings, and its pages do what they say."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import gem_bundle
from gem_bundle import testing
from tests.tours import Command, follow, tour

if TYPE_CHECKING:
    from tests.warm_spark import WarmSpark

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
# Their commands install things, and have tests of their own.
TUTORIALS = DOCS / "tutorials"
KAFKA = {"bad-rows"}


def build(docs: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build a site as `scripts/docs` does."""
    return subprocess.run(
        [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", docs, site],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site."""
    folder = tmp_path_factory.mktemp("site")
    built = build(DOCS, folder)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.programs
def test_the_site_builds_without_warnings(site: Path) -> None:
    for page in DOCS.rglob("*.md"):
        assert (site / page.relative_to(DOCS).with_suffix(".html")).is_file(), page


@pytest.mark.programs
def test_the_home_page_is_the_beginning_of_the_readme(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    assert "gem-bundle composes Spark Structured Streaming pipelines" in home
    assert "_images/demo.svg" in home
    assert (site / "_images" / "demo.svg").is_file()


@pytest.mark.programs
def test_every_diagnostic_has_an_address_of_its_own(site: Path) -> None:
    assert '<section id="gb301">' in (site / "reference" / "diagnostics" / "gb3.html").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("link", "there"),
    [
        ("[`a`](docs/event-time.md#through-windows)", "[`a`](/event-time.md#through-windows)"),
        ("![a picture](docs/demo.svg)", "![a picture](/demo.svg)"),
        ("[`a`](examples/flights/flights.yaml)", "[`a`](/examples.md)"),
        ("[`a`](README.md)", "[`a`](/index.md)"),
        ("[`a`](scripts/test)", "`a`"),
        ("[a](https://semver.org)", "[a](https://semver.org)"),
        ("[a](#speed)", "[a](#speed)"),
    ],
)
def test_links_of_included_files_become_links_of_the_site(link: str, there: str) -> None:
    content = [f"See {link}."]
    setup = runpy.run_path(str(DOCS / "conf.py"))
    setup["links_of_included"](SimpleNamespace(srcdir=DOCS), Path("../README.md"), "index", content)
    assert content == [f"See {there}."]


@pytest.mark.programs
def test_what_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    shutil.copy(DOCS / "conf.py", tmp_path)
    lost = ["# Home", "[a page](gone.md)", "[a heading](#gone)", "```{include} gone.md\n```"]
    (tmp_path / "index.md").write_text("\n\n".join(lost))

    built = build(tmp_path, tmp_path / "site")

    assert built.returncode == 1
    found = re.findall(r"index\.md:(\d+): .*", built.stderr)
    assert sorted(found) == ["3", "5", "7"], built.stderr


# What is on the pages


@pytest.mark.parametrize("module", [gem_bundle, testing], ids=lambda module: module.__name__)
def test_every_public_name_is_on_the_page_of_python(module: ModuleType) -> None:
    page = (DOCS / "python-api.md").read_text(encoding="utf-8")
    parts = re.split(r"^\.\. currentmodule:: ([\w.]+)$", page, flags=re.M)
    told = dict(zip(parts[1::2], parts[2::2], strict=True))[module.__name__]
    names = re.findall(r"^\.\. auto\w+:: (\w+)$", told, re.M)
    assert sorted(names) == sorted(module.__all__)


def test_every_example_is_on_the_page_of_examples() -> None:
    page = (DOCS / "examples.md").read_text(encoding="utf-8")
    for folder in (ROOT / "examples").iterdir():
        assert f"../examples/{folder.name}/" in page, folder.name


def test_every_extra_is_on_the_page_of_installation() -> None:
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"].keys()
    page = (DOCS / "install.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([\w-]+)` \|", page, re.M)) == extras - {"dev"}


def test_all_targets_of_the_suite_are_told_to_work_over_connect() -> None:
    from gem_bundle.plugins import load_registry
    from tests.kit.conformance.test_registry import suites

    (told,) = re.findall(r"of the targets (.+?);", (DOCS / "install.md").read_text(encoding="utf-8"))
    proved = {suite.gem for suite in suites()}
    targets = {entry.name for entry in load_registry() if entry.kind == "target" and entry.load() in proved}
    assert set(re.findall(r"`(\w+)`", told)) == targets


def test_links_of_the_readme_lead_somewhere() -> None:
    found = re.findall(r"\]\(((?!https?:)[^)#]+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(found) > 4
    assert [link for link in found if not (ROOT / link).exists()] == []


# What nobody can see by reading the code: where it was tried.
PLATFORM = re.compile(
    r"[Dd]atabricks|[Kk]ubernetes|Spark Connect|SPARK_REMOTE|spark-submit|submit\.sh|notebook|Unity Catalog|[Ss]erverless"
    r"|object store|s3a?://|\bS3\b|HDFS|GCS|Azure|Amazon|\bAWS\b|Google|\bEMR\b|YARN|Dataproc|Fabric|Synapse"
    r"|macOS|(?:on|needs?) Linux|(?:on|,) Windows|Java \d\d|Python 3\.\d|Spark 4\.\d"
)
UNTRIED = "nobody has tried"


def unproved(page: str) -> list[str]:
    """The paragraphs of a page that name a platform, and neither a test that is there nor that nobody has tried it."""
    prose = re.sub(r"^```.*?^```$|<!--.*?-->|^#[^\n]*$", "", page, flags=re.M | re.S)
    # What a paragraph announces belongs to it.
    prose = re.sub(r":\s*\n\s*\n", ":\n", prose)
    return [
        paragraph.strip().partition("\n")[0]
        for paragraph in re.split(r"\n\s*\n", prose)
        if PLATFORM.search(paragraph)
        and UNTRIED not in " ".join(paragraph.lower().split())
        and not any((ROOT / named).is_file() for named in re.findall(r"tests/[\w/]+\.py", paragraph))
    ]


def test_what_is_said_of_a_platform_names_its_test() -> None:
    pages = [ROOT / "README.md", *DOCS.glob("*.md"), *TUTORIALS.glob("*.md")]
    found = {
        page.name: paragraphs for page in pages if (paragraphs := unproved(page.read_text(encoding="utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("It runs on Kubernetes.", ["It runs on Kubernetes."]),
        ("It runs on Kubernetes (`tests/kit/test_docs_site.py`).", []),
        ("It runs (`tests/kit/test_gone.py`)\non Kubernetes.", ["It runs (`tests/kit/test_gone.py`)"]),
        ("You need Linux.", ["You need Linux."]),
        ("It reads GCS with Java 21.", ["It reads GCS with Java 21."]),
        ("`--for databricks` does it.", ["`--for databricks` does it."]),
        ("It runs on Fabric.\n\nNobody has tried it on EMR.", ["It runs on Fabric."]),
        ("It runs on Fabric:\n\n```sh\nrun\n```\n\nNobody has tried it.", []),
        ("Windows close where the watermark passes, as Linux does nothing about.", []),
        ("Nobody has\ntried it on Kubernetes.", []),
        ("It runs.\n\n```yaml\njob: Kubernetes\n```", []),
        ("It runs.\n\n### Over Spark Connect\n\nThere too.", []),
        ("It runs.\n\n### There\n\nOver Spark Connect too.", ["Over Spark Connect too."]),
    ],
)
def test_a_platform_without_a_test_is_found(said: str, found: list[str]) -> None:
    assert unproved(f"# A page\n\n## Where\n\n{said}\n") == found


def pages_with_commands(*, spark: bool) -> list[Path]:
    """The pages whose commands are typed here: those that need a JVM, or the others."""
    found = []
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        commands = [step.text for step in tour(text) if isinstance(step, Command)]
        if commands and spark == any(
            re.match(r"gem-bundle (run|preview|test|backfill)\b", line) for line in commands
        ):
            found.append(page)
    return found


def by_name(page: Path) -> str:
    return page.stem


@pytest.mark.sample(2)
@pytest.mark.programs
@pytest.mark.parametrize("page", pages_with_commands(spark=False), ids=by_name)
def test_pages_do_what_they_say(page: Path, tmp_path: Path) -> None:
    assert follow(page, tmp_path, Path(sys.executable).parent) > 0


def with_kafka(page: Path) -> object:
    """A page that reads a topic needs a broker."""
    return pytest.param(page, marks=pytest.mark.kafka) if page.stem in KAFKA else page


@pytest.mark.sample(1)
@pytest.mark.spark
@pytest.mark.parametrize("page", list(map(with_kafka, pages_with_commands(spark=True))), ids=by_name)
def test_pages_that_run_pipelines_do_what_they_say(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest, warm_spark: WarmSpark
) -> None:
    environment = {**os.environ, **warm_spark.variables()}
    if page.stem == "avro":
        environment |= {"SCHEMA_REGISTRY": request.getfixturevalue("schema_registry").url}
    if page.stem in KAFKA:
        environment |= {"BROKER": request.getfixturevalue("kafka").bootstrap}
    if page.stem == "services":
        environment |= {"SERVICE": request.getfixturevalue("rest_service").url}
    if page.stem == "databases":
        environment |= request.getfixturevalue("postgres").environment()
    assert follow(page, tmp_path, Path(sys.executable).parent, environment=environment) > 0


def test_every_block_of_every_page_is_tested_or_says_why_not() -> None:
    for page in DOCS.rglob("*.md"):
        if REFERENCE not in page.parents:  # made of what other tests try
            list(tour(page.read_text(encoding="utf-8")))
