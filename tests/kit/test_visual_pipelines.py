"""The page *Coming from visual pipelines*: every gem of the earlier product has its line, and ours exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from gem_bundle.check.checker import check_file
from gem_bundle.cli import main
from gem_bundle.plugins import load_registry

PAGE = Path(__file__).parents[2] / "docs" / "visual-pipelines.md"
ROW = re.compile(r"^\| ([A-Za-z0-9]+) \| (.+?) \| (.+) \|$", re.M)

PIPELINE = """
pipeline: p
sources: {{ticks: {{gem: rate}}}}
transforms: {{n: {{gem: {name}, input: ticks}}}}
targets: {{out: {{gem: console, input: n}}}}
"""

# The gems that Prophecy documents for Spark, by the titles of their pages; a subgraph of any kind is one.
THEIRS = [
    "Aggregate", "BulkColumnExpressions", "BulkColumnRename", "ColumnParser", "DataCleansing",
    "DataQualityCheck", "Deduplicate", "DynamicReplace", "DynamicSelect", "Filter", "FlattenSchema",
    "FuzzyMatch", "Limit", "Normalize", "OrderBy", "Reformat", "SampleRows", "SchemaTransform", "Sequence",
    "SetOperation", "Unpivot", "WindowFunction", "Watermark", "CompareColumns", "Join", "Repartition",
    "RowDistributor", "DeltaTableOperations", "Directory", "Email", "FileOperation", "ForEachBatch",
    "RestAPIEnrich", "SQLStatement", "Script", "Tableau", "Subgraph", "TableIterator", "WhileIterator",
    "GenAIChatbot", "OpenAI", "PineconeLookup", "TextProcessing", "AutoLoader", "Avro", "BigQuery", "Binary",
    "CatalogTable", "CosmosDB", "EmailData", "PydeequDataQuality", "RandomDataCreator", "SplunkHEC",
    "CSV", "DB2", "Delta", "FixedFormat", "FTP", "Hive", "Hudi", "Iceberg", "JDBC", "JSON", "Kafka",
    "Lookup", "MongoDB", "ORC", "Oracle", "Parquet", "Redshift", "Salesforce", "Seed", "Smartsheet",
    "Snowflake", "SyntheticDataGenerator", "Teradata", "Text", "UploadFile", "XLSX", "XML",
]  # fmt: skip


def rows() -> list[tuple[str, str, str]]:
    found = ROW.findall(PAGE.read_text(encoding="utf-8"))
    return [row for row in found if row[0] != "theirs"]


def test_every_gem_of_theirs_has_one_line() -> None:
    assert sorted(theirs for theirs, _, _ in rows()) == sorted(THEIRS)


def test_what_it_says_of_ours_is_there() -> None:
    known = {entry.name for entry in load_registry()}
    for theirs, ours, why in rows():
        names = re.findall(r"`(\w+)`", ours)
        assert ours == "none" or names, theirs
        assert set(names) <= known, theirs
        assert why.endswith("."), theirs


def test_a_search_for_theirs_finds_ours() -> None:
    ours_of = {theirs: set(re.findall(r"`(\w+)`", ours)) for theirs, ours, _ in rows()}
    named: dict[str, set[str]] = {}
    for entry in load_registry():
        for theirs in entry.visual_names():
            named.setdefault(theirs, set()).add(entry.name)
        # Whatever its kind, a gem of that name says the same.
        wanted = {theirs for theirs, ours in ours_of.items() if entry.name in ours}
        assert set(entry.visual_names()) == wanted, entry.name
    assert named == {theirs: ours for theirs, ours in ours_of.items() if ours}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("RowDistributor", "`RowDistributor` of visual tools is `route` here."),
        ("rowdistributor", "`RowDistributor` of visual tools is `route` here."),
        ("Avro", "`Avro` of visual tools is `file`, `from_avro` or `to_avro` here."),
        ("routs", "Did you mean `route`?"),
    ],
)
def test_their_names_are_answered_with_ours(tmp_path: Path, name: str, hint: str) -> None:
    for command in ("gems", "describe"):
        said = CliRunner().invoke(main, [command, name]).output
        assert f"There is no gem `{name}`. {hint}" in " ".join(said.split())
    file = tmp_path / "p.yaml"
    file.write_text(PIPELINE.format(name=name))
    assert [found.hint for found in check_file(file).diagnostics] == [hint]
