"""The source `auto_loader`: checked here, replaced in tests, and refused where there is no Auto Loader."""

from __future__ import annotations

from textwrap import dedent

import pytest
from pydantic import ValidationError

from gem_bundle import Column, GemError, StreamReadContext
from gem_bundle.testing.declared.load import load_tests
from gem_bundle.testing.declared.run import run_test
from gem_file.auto_loader import AutoLoaderSource
from gem_file.cloud_reading import AutoLoaderOptions
from gem_file.reading import ReadingOptions
from tests.gems.draining import make

CLICKS = {"format": "json", "path": "/Volumes/main/clicks", "schema": "id bigint, name string"}
INFERRED = {"format": "json", "path": "/Volumes/main/clicks", "schema_location": "/Volumes/main/schemas"}
NAMED = "spark.sql.streaming.queryEvolution.enableSourceEvolution"


def source(**raw):
    return make(AutoLoaderSource, {**CLICKS, **raw})


def inferring(**raw):
    return make(AutoLoaderSource, {**INFERRED, **raw})


class Reader:
    """A reader that keeps what it is told."""

    def __init__(self):
        self.told = {}

    def __getattr__(self, name):
        def tell(*values, **named):
            self.told[name] = named or values[0]
            return self

        return tell


def told(gem):
    """What the reader of a stream is told: its format, its options, its schema, its path."""
    reader = Reader()
    # A session of a runtime that names sources.
    spark = type("Spark", (), {"readStream": reader, "conf": {NAMED: "true"}})()
    context = StreamReadContext(node="c", spark=spark, name="c")
    gem.read_stream(context)
    return reader.told


# Options


def test_the_reader_is_told_what_is_given_by_the_names_that_auto_loader_has():
    gem = inferring(
        schema_hints="id long, tags map<string,string>",
        infer_column_types=True,
        rescued_data_column="_rescued",
        partition_columns=["year", "day"],
        max_files_per_trigger=10,
        max_bytes_per_trigger="10g",
        clean_source="move",
        clean_source_retention_duration="14 days",
        clean_source_move_destination="/Volumes/main/read",
        use_notifications=True,
        queue_url="https://sqs/queue",
        aws_access_key="AKIA",
        aws_secret_key="shh",
        service_credential="events",
        resource_tags={"team": "web"},
        restrict_notification_setup_to_same_aws_account_id=True,
        multi_line=True,
        spark_options={"cloudFiles.new": 1},
    )
    said = told(gem)

    assert said["format"] == "cloudFiles"
    assert said["load"] == "/Volumes/main/clicks"
    assert said["options"] == {
        "cloudFiles.format": "json",
        "cloudFiles.schemaLocation": "/Volumes/main/schemas",
        "cloudFiles.schemaHints": "id long, tags map<string,string>",
        "cloudFiles.inferColumnTypes": "true",
        "rescuedDataColumn": "_rescued",
        "cloudFiles.partitionColumns": "year,day",
        "cloudFiles.maxFilesPerTrigger": "10",
        "cloudFiles.maxBytesPerTrigger": "10737418240",
        "cloudFiles.cleanSource": "MOVE",
        "cloudFiles.cleanSource.retentionDuration": "14 days",
        "cloudFiles.cleanSource.moveDestination": "/Volumes/main/read",
        "cloudFiles.useNotifications": "true",
        "cloudFiles.queueUrl": "https://sqs/queue",
        "cloudFiles.awsAccessKey": "AKIA",
        "cloudFiles.awsSecretKey": "shh",
        "databricks.serviceCredential": "events",
        "cloudFiles.resourceTag.team": "web",
        "cloudFiles.restrictNotificationSetupToSameAWSAccountId": "true",
        "multiLine": "true",
        "cloudFiles.new": "1",
    }


def test_options_can_be_pasted_from_databricks_guide():
    assert AutoLoaderOptions.canonical("cloudFiles.schemaEvolutionMode") == "schema_evolution_mode"
    assert (
        AutoLoaderOptions.canonical("cloudFiles.cleanSource.moveDestination")
        == "clean_source_move_destination"
    )
    assert AutoLoaderOptions.canonical("rowValidationXSDPath") == "row_validation_xsd_path"


@pytest.mark.parametrize(
    "name",
    [
        *("allowOverwrites", "backfillInterval", "cleanSource", "cleanSource.moveDestination"),
        *("cleanSource.retentionDuration", "fetchParallelism", "format", "includeExistingFiles"),
        *("inferColumnTypes", "listOnStart", "maxBytesPerTrigger", "maxFileAge", "maxFilesPerTrigger"),
        *("partitionColumns", "pathRewrites", "resourceTag", "schemaEvolutionMode", "schemaHints"),
        *("schemaLocation", "useIncrementalListing", "useManagedFileEvents", "useNotifications"),
        *("useStrictGlobber", "validateOptions"),
    ],
)
def test_each_option_of_databricks_guide_that_no_cloud_has_for_itself_is_there(name: str):
    assert AutoLoaderOptions.canonical(f"cloudFiles.{name}") in AutoLoaderOptions.model_fields


def test_folders_are_listed_anew_where_it_is_asked_for():
    said = told(source(use_managed_file_events=True, list_on_start=True, validate_options=False))

    assert said["options"]["cloudFiles.listOnStart"] == "true"
    assert said["options"]["cloudFiles.validateOptions"] == "false"


def test_all_options_of_formats_that_the_source_file_has_are_there():
    assert ReadingOptions.model_fields.keys() <= AutoLoaderOptions.model_fields.keys()


def test_secrets_are_not_printed():
    gem = source(use_notifications=True, client_secret="hush", connection_string="hush", private_key="hush")

    assert "hush" not in repr(gem.options)


def test_words_may_be_written_small():
    assert source(clean_source="off").options.clean_source == "OFF"


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ({"schema_hints": "id long"}, "not both"),
        ({"schema": None, "schema_hints": "id lng"}, "there is no type `lng`"),
        ({"schema_evolution_mode": "addNewColumns"}, "is for inferred columns"),
        ({"format": "xml"}, "needs `row_tag`"),
        ({"row_tag": "book"}, "`row_tag` is for xml, and the format is json"),
        ({"clean_source": "MOVE"}, "go together"),
        ({"clean_source_move_destination": "/a"}, "go together"),
        ({"clean_source": "MOVE", "clean_source_move_destination": "/Volumes/main/clicks/old"}, "read again"),
        ({"clean_source_retention_duration": "9 days"}, "is for `clean_source: MOVE` or `DELETE`"),
        ({"clean_source": "DELETE", "clean_source_retention_duration": "7 days"}, "more than 7 days"),
        ({"use_managed_file_events": True, "use_notifications": True}, "goes without `use_notifications`"),
        ({"use_managed_file_events": True, "backfill_interval": "1 day"}, "goes without `backfill_interval`"),
        ({"queue_name": "clicks"}, "`queue_name` can't be used without `use_notifications: true`"),
        ({"use_managed_file_events": True, "fetch_parallelism": 2}, "without `use_notifications: true`"),
        ({"use_notifications": True, "aws_access_key": "AKIA"}, "go together"),
        ({"max_files_per_trigger": 0}, "greater than 0"),
        ({"schema_evolution_mode": "add"}, "addNewColumns"),
    ],
)
def test_what_does_not_go_together_is_refused(raw, says):
    with pytest.raises(ValidationError, match=says):
        source(**raw)


def test_columns_that_nobody_knows_have_to_be_kept_somewhere():
    (found,) = make(AutoLoaderSource, {"format": "json", "path": "in"}).check()

    assert (found.code, found.severity) == ("GB206", "error")
    for fine in (source(), inferring(), make(AutoLoaderSource, {"format": "binaryFile", "path": "in"})):
        assert list(fine.check()) == []


# Columns


def test_the_columns_are_those_of_the_schema_and_what_is_rescued():
    declared = (Column("id", "bigint"), Column("name", "string"))

    assert source().infer().columns == declared
    assert source(rescued_data_column="_rescued").infer().columns == (*declared, Column("_rescued", "string"))
    assert source(rescued_data_column="name").infer().columns == declared
    assert inferring().infer().columns is None


def test_a_first_run_may_pass_over_what_is_there():
    assert source().semantics.only_new is False
    assert source(include_existing_files=False).semantics.only_new == "include_existing_files"


# Here


@pytest.mark.spark
def test_without_auto_loader_the_gem_file_is_named(spark):
    with pytest.raises(GemError, match="Auto Loader is part of Databricks") as caught:
        source().read_stream(StreamReadContext(node="c", spark=spark, name="c"))

    assert caught.value.code == "GB503"
    assert "read the files with the gem `file`" in caught.value.hint


@pytest.mark.spark
def test_a_declared_test_gives_it_rows(spark, tmp_path):
    pipeline = """
        pipeline: clicks
        sources:
          clicks:
            gem: auto_loader
            options:
              {format: json, path: /Volumes/main/clicks, schema: "id bigint, name string", rescued_data_column: _rescued}
        transforms:
          fine: {gem: filter, input: clicks, options: {condition: _rescued is null}}
        targets:
          table: {gem: delta, input: fine, options: {path: out}}
    """
    test = """
        tests:
          what is rescued is left out:
            steps:
              - add:
                  clicks:
                    - {id: 1, name: ada}
                    - {id: 2, _rescued: "{}"}
                expect:
                  table:
                    - {id: 1, name: ada}
    """
    (tmp_path / "clicks.yaml").write_text(dedent(pipeline).lstrip())
    (tmp_path / "clicks.test.yaml").write_text(dedent(test).lstrip())
    loaded = load_tests(tmp_path / "clicks.test.yaml")
    assert loaded.diagnostics == ()

    outcome = run_test(loaded.tests[0], lambda: spark)

    assert outcome.ok, outcome
