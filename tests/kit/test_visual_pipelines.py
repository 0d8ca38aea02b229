"""The page *Coming from visual pipelines*: every gem of the earlier product has its line, and ours exist."""

from __future__ import annotations

import re
from pathlib import Path

from gem_bundle.plugins import load_registry

PAGE = Path(__file__).parents[2] / "docs" / "visual-pipelines.md"
ROW = re.compile(r"^\| ([A-Za-z0-9]+) \| (.+?) \| (.+) \|$", re.M)

# The gems that Prophecy documents for Spark, by the titles of their pages; a subgraph of any kind is one.
THEIRS = [
    "Aggregate", "BulkColumnExpressions", "BulkColumnRename", "ColumnParser", "DataCleansing",
    "DataQualityCheck", "Deduplicate", "DynamicReplace", "DynamicSelect", "Filter", "FlattenSchema",
    "FuzzyMatch", "Limit", "Normalize", "OrderBy", "Reformat", "SampleRows", "SchemaTransform", "Sequence",
    "SetOperation", "Unpivot", "WindowFunction", "Watermark", "CompareColumns", "Join", "Repartition",
    "RowDistributor", "DeltaTableOperations", "Directory", "Email", "FileOperation", "ForEachBatch",
    "RestAPIEnrich", "SQLStatement", "Script", "Tableau", "Subgraph", "TableIterator", "WhileIterator",
    "GenAIChatbot", "OpenAI", "PineconeLookup", "TextProcessing", "Avro", "BigQuery", "Binary", "CosmosDB",
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


def test_a_gem_that_names_theirs_is_on_its_line() -> None:
    lines = {theirs: ours for theirs, ours, _ in rows()}
    named = 0
    for entry in load_registry():
        told = re.search(r"In visual tools: ([\w, ]+)\.", entry.load().__doc__ or "")
        for theirs in told[1].split(", ") if told else ():
            assert f"`{entry.name}`" in lines[theirs]
            named += 1
    assert named > 4
