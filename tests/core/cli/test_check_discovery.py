"""`gem-bundle check --connect` looks which columns tables and files have; without it nobody looks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.core.cli.conftest import Cli

PIPELINE = """
pipeline: clicks
mode: {mode}
sources:
  clicks: {{gem: {gem}, options: {options}}}
transforms:
  recent: {{gem: filter, input: clicks, options: {{condition: "pagee is not null"}}}}
targets:
  out: {{gem: console, input: recent}}
"""
MISSPELT = (
    "clicks.yaml:7:61: error[GB210]: transform `recent`: there is no column `pagee`\n"
    "    Did you mean `page`?\n"
)


def pipeline(gem: str, options: str, mode: str = "stream") -> str:
    return PIPELINE.format(gem=gem, options=options, mode=mode)


def assert_only_a_look_tells(cli: Cli) -> None:
    """The misspelt column is found with `--connect`, and only then."""
    silent = cli("check", "clicks.yaml")
    assert (silent.exit_code, silent.stderr) == (0, "")
    assert silent.stdout == "clicks.yaml: ok (3 nodes)\n"
    told = cli("check", "--connect", "clicks.yaml")
    assert told.exit_code == 1
    assert told.stderr == MISSPELT
    assert told.stdout == "clicks.yaml: 1 error\n"


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["stream", "batch"])
def test_a_misspelt_column_of_a_delta_table(
    cli: Cli, project: Callable[..., Path], spark: SparkSession, mode: str
) -> None:
    folder = project("clicks.yaml", pipeline("delta", "{path: t}", mode)).parent
    spark.sql("select 'home' page, current_timestamp() at").write.format("delta").save(str(folder / "t"))
    assert_only_a_look_tells(cli)


def test_a_misspelt_column_of_a_delta_table_without_spark(cli: Cli, project: Callable[..., Path]) -> None:
    folder = project("clicks.yaml", pipeline("delta", "{path: t}")).parent
    fields = [{"name": "page", "type": "string", "nullable": True, "metadata": {}}]
    schema = json.dumps({"type": "struct", "fields": fields})
    log = folder / "t" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text(json.dumps({"metaData": {"schemaString": schema}}) + "\n")
    assert_only_a_look_tells(cli)


def test_a_misspelt_column_of_csv_files(cli: Cli, project: Callable[..., Path]) -> None:
    folder = project("clicks.yaml", pipeline("file", "{path: in, format: csv, header: true}", "batch")).parent
    (folder / "in").mkdir()
    (folder / "in" / "a.csv").write_text("page,at\nhome,2024-01-31\n")
    assert_only_a_look_tells(cli)


def test_sources_whose_columns_stay_unknown_are_named(cli: Cli, project: Callable[..., Path]) -> None:
    text = pipeline("delta", "{path: 's3a://bucket/t'}")
    project("clicks.yaml", text)
    told = cli("check", "--connect", "clicks.yaml")
    assert told.stdout == (
        "clicks.yaml: ok (3 nodes; everything that was tried can be reached; "
        "the places of `clicks` are left to Spark; columns of `clicks` stay unknown)\n"
    )
    more = "".join(f"  more{n}: {{gem: delta, options: {{table: t{n}}}}}\n" for n in range(5))
    targets = "".join(f"  out{n}: {{gem: console, input: more{n}}}\n" for n in range(5))
    project("clicks.yaml", text.replace("transforms:\n", f"{more}transforms:\n") + targets)
    told = cli("check", "--connect", "clicks.yaml")
    assert "; columns of `clicks`, `more0`, `more1`, 3 more stay unknown)" in told.stdout
    assert "stay unknown" not in cli("check", "clicks.yaml").stdout


@pytest.mark.spark
def test_sparks_analyser_reads_itself_what_was_looked_at(
    cli: Cli, project: Callable[..., Path], spark: SparkSession
) -> None:
    text = pipeline("file", "{path: in, format: csv, header: true}", "batch")
    folder = project("clicks.yaml", text.replace("pagee", "_metadata.file_name")).parent
    (folder / "in").mkdir()
    (folder / "in" / "a.csv").write_text("page,at\nhome,2024-01-31\n")
    told = cli("check", "--connect", "--engine", "--quiet", "clicks.yaml")
    assert (told.exit_code, told.stdout) == (0, "")
    assert spark.range(1).count() == 1
