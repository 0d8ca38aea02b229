"""What a record keeps of a pipeline: all that decides on a checkpoint, the same each time, and no secret."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.withheld import ENVIRONMENT, SECRET, with_text
from gem_bundle.check.checker import check_definition, check_file
from gem_bundle.pipeline.document import parse
from gem_bundle.pipeline.loader import LoadOptions, load_values
from gem_bundle.pipeline.secrets import SecretStore
from tests.core.changes.edits import plan, verdict

if TYPE_CHECKING:
    from gem_bundle.changes.record import NodeRecord, VersionRecord

CLICKS = """
pipeline: clicks
version: 1.4.0
parameters:
  password: ${secret:kafka/password}
  brokers: [b1:9092, b2:9092]
  map: {type: mapping, default: {inner: "${secret:kafka/inner}", plain: 1}}
spark:
  spark.sql.shuffle.partitions: 3
  spark.sql.streaming.stateStore.providerClass: x.${secret:kafka/setting}
  spark.sql.streaming.multipleWatermarkPolicy: ${env:POLICY}
  spark.hadoop.fs.s3a.secret.key: ${secret:kafka/setting}
sources:
  clicks:
    gem: kafka
    options:
      bootstrap_servers: ${brokers}
      subscribe: [clicks]
      spark_options:
        kafka.custom.jaas.config: login user="me" password="${secret:kafka/within}";
        kafka.custom.password: written-out
        kafka.custom.id: ${env:CLIENT}
        kafka.custom.rack: rack-1
  files:
    gem: file
    options: {format: json, path: in, schema: "id string, at timestamp, n int"}
transforms:
  timely:
    gem: watermark
    input: files
    options: {column: at, delay: 10 minutes}
  counts:
    gem: aggregate
    input: timely
    options:
      window: {column: at, duration: 1 minute}
      group_by: ["concat(id, '${env:TOKEN}') as tagged", "'${password}' as p"]
      aggregates: {n: "sum(n)", d: "max('${secret:kafka/within}')"}
  cleaned:
    gem: python
    input: clicks
    options: {function: "jobs:clean", arguments: {key: "${password}", more: "${map}", list: ["${env:TOKEN}"]}}
targets:
  table:
    gem: file
    input: counts
    trigger: {processing_time: 10 seconds}
    options: {format: parquet, path: out}
  sink:
    gem: kafka
    input: cleaned
    options:
      bootstrap_servers: "${secret:kafka/host}:9092"
      topic: out
"""
VALUES = {
    "password": "pass-word-value",
    "within": "within-value",
    "inner": "inner-value",
    "setting": "setting-value",
    "host": "host-value",
}
VARIABLES = {"CLIENT": "client-value", "TOKEN": "token-value", "POLICY": "policy-value"}
ENVIRONMENT_OF_RUN = VARIABLES | {f"GEM_BUNDLE_SECRET_KAFKA_{k.upper()}": v for k, v in VALUES.items()}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "jobs.py").write_text("def clean(df, **_): return df.selectExpr('value')\n")
    path = tmp_path / "clicks.yaml"
    path.write_text(CLICKS)
    return path


def version(file: Path, target: str, *, secrets: bool = True) -> VersionRecord:
    store = SecretStore(ENVIRONMENT_OF_RUN) if secrets else None
    checked = check_file(file, LoadOptions(environment=ENVIRONMENT_OF_RUN, secrets=store))
    assert checked.plan is not None, checked.diagnostics
    return version_of(checked.plan, target)


def node(file: Path, target: str, name: str) -> NodeRecord:
    found = version(file, target).node(name)
    assert found is not None
    return found


def edited(file: Path, old: str, new: str) -> Path:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    return file


def test_only_what_leads_to_the_target_is_kept_inputs_first(file: Path) -> None:
    found = version(file, "table")
    assert [n.id for n in found.nodes] == ["files", "timely", "counts", "table"]
    assert (found.pipeline, found.pipeline_version, found.folder) == ("clicks", "1.4.0", str(file.parent))
    assert found.spark
    assert found.checkpoint == str(file.parent / "checkpoints/clicks/table")


def test_options_have_their_values_in_effect_by_one_name_whatever_their_spelling(file: Path) -> None:
    first = node(file, "table", "files")
    assert first.options["path"] == str(file.parent / "in")
    assert first.options["max_files_per_trigger"] is None
    edited(file, "path: in,", "path: ./in, maxFilesPerTrigger: 3,")
    assert node(file, "table", "files").options["max_files_per_trigger"] == 3


def test_a_node_says_where_it_comes_from_and_what_it_is(file: Path) -> None:
    source = node(file, "table", "files")
    assert (source.gem, source.distribution, source.mode) == ("file", "gem-bundle", "stream")
    assert source.distribution_version
    assert source.places == {"path": (str(file.parent / "in"),)}
    assert source.readers == ("files",)
    assert source.columns == (("id", "string"), ("at", "timestamp"), ("n", "int"))
    target = node(file, "table", "table")
    assert (target.output_mode, target.trigger) == ("append", "processing_time: 10 seconds")
    assert target.inputs[0].node == "counts"
    assert target.columns is not None
    assert [name for name, _ in target.columns] == ["window", "tagged", "p", "n", "d"]


def test_a_source_that_comes_over_two_paths_has_two_readers(file: Path) -> None:
    join = "both: {gem: join, inputs: {a: files, b: timely}, options: {on: [id], how: inner}}"
    edited(
        file,
        "  counts:\n    gem: aggregate\n    input: timely",
        f"  {join}\n  counts:\n    gem: aggregate\n    input: both",
    )
    edited(file, "window: {column: at, duration: 1 minute}\n      group_by: [", "group_by: [id, ")
    edited(file, 'aggregates: {n: "sum(n)", d', "aggregates: {d")
    edited(
        file,
        "    trigger: {processing_time: 10 seconds}\n    options: {format: parquet, path: out}",
        "    output_mode: update\n    options: {}",
    )
    edited(file, "  table:\n    gem: file", "  table:\n    gem: console")
    assert node(file, "table", "files").readers == ("files", "files__both_b")


def test_operators_are_in_order_and_know_what_the_checker_knows(file: Path) -> None:
    watermark, aggregate = version(file, "table").operators
    assert (watermark.position, watermark.kind, watermark.node) == (0, "watermark", "timely")
    assert watermark.details == {"column": "at", "delay": "10 minutes"}
    assert (aggregate.kind, aggregate.inputs, aggregate.stateful) == ("aggregate", (0,), True)
    assert aggregate.details["duration"] == "1 minute"
    assert aggregate.keys is not None
    assert aggregate.keys[0] == "struct<start: timestamp, end: timestamp> of at"
    assert aggregate.keys[1] == "string of id"
    assert aggregate.values is not None
    assert "n: bigint" in aggregate.values
    assert (watermark.keys, watermark.values) == (None, None)


PAIRS = """
pipeline: shop
sources:
  orders: {gem: file, options: {format: json, path: a, schema: "k string, n int, at timestamp, more string"}}
  views: {gem: file, options: {format: json, path: b, schema: "k string, m int, seen timestamp, more string"}}
transforms:
  ta: {gem: watermark, input: orders, options: {column: at, delay: 1 hour}}
  tb: {gem: watermark, input: views, options: {column: seen, delay: 1 hour}}
  pairs:
    gem: join
    inputs: [ta, tb]
    options: {how: inner, condition: "ta.k = tb.k and ta.n = tb.m and ta.at >= tb.seen"}
  flat: {gem: select, input: pairs, options: {columns: [n, seen]}}
  once: {gem: deduplicate, input: ta, options: {columns: [k], within_watermark: true}}
targets:
  out: {gem: console, input: flat}
  first: {gem: console, input: once}
"""


def test_a_join_is_kept_by_what_is_equal_and_keeps_rows_of_both_sides() -> None:
    (join,) = (found for found in version_of(plan(PAIRS), "out").operators if found.kind == "join")
    assert join.keys == ("string of k", "int of m, n")
    assert join.values == (
        *("ta.k: string", "ta.n: int", "ta.at: timestamp", "ta.more: string"),
        *("tb.k: string", "tb.m: int", "tb.seen: timestamp", "tb.more: string"),
    )


def test_of_duplicates_within_a_watermark_it_is_kept_when_they_expire() -> None:
    (once,) = (found for found in version_of(plan(PAIRS), "first").operators if found.kind == "deduplicate")
    assert (once.keys, once.values) == (("string of k",), ("expiry: bigint",))


def test_no_verdict_goes_by_what_an_earlier_record_says_of_keys_and_values() -> None:
    def earlier(version: VersionRecord) -> VersionRecord:
        joins = (replace(found, keys=("string of at, k",), values=()) for found in version.operators)
        return replace(version, operators=tuple(joins))

    assert verdict(PAIRS, PAIRS, ran=earlier).changes == ()


def test_a_record_says_which_versions_of_programs_ran(file: Path) -> None:
    found = version(file, "table")
    assert found.gem_bundle == metadata.version("gem-bundle")
    assert found.spark == metadata.version("pyspark")
    assert found.python == platform.python_version()


def test_a_function_is_known_by_its_code(file: Path) -> None:
    before = node(file, "sink", "cleaned").functions
    assert before["function"]
    edited(file.with_name("jobs.py"), "**_)", "**_  )")
    assert node(file, "sink", "cleaned").functions == before
    edited(file.with_name("jobs.py"), "'value'", "'key'")
    assert node(file, "sink", "cleaned").functions != before


def test_only_settings_that_a_checkpoint_keeps_are_kept(file: Path) -> None:
    assert version(file, "table").settings == {
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.streaming.multipleWatermarkPolicy": "**********",
        "spark.sql.streaming.stateStore.providerClass": "x.**********",
    }


def test_settings_that_decide_on_what_expressions_give_are_kept_unless_they_are_defaults(
    tmp_path: Path,
) -> None:
    file = tmp_path / "zones.yaml"
    file.write_text(
        dedent("""
        pipeline: zones
        spark:
          spark.sql.session.timeZone: UTC
          spark.sql.caseSensitive: "FALSE"
          spark.sql.ansi.enabled: "false"
          spark.sql.legacy.timeParserPolicy: LEGACY
          spark.sql.adaptive.enabled: "false"
        sources:
          ticks: {gem: rate}
        targets:
          screen: {gem: console, input: ticks}
        """)
    )
    assert version(file, "screen").deciding == {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
        "spark.sql.session.timeZone": "UTC",
    }


@pytest.mark.parametrize("target", ["table", "sink"])
def test_no_secret_gets_in_by_any_way(file: Path, target: str) -> None:
    text = json.dumps(asdict(version(file, target)))
    for value in (*VALUES.values(), *VARIABLES.values(), "written-out"):
        assert value not in text


def test_markers_stand_where_secrets_are_and_what_stands_beside_them_is_kept(file: Path) -> None:
    clicks = node(file, "sink", "clicks")
    assert clicks.options["spark_options"] == {
        "kafka.custom.jaas.config": SECRET,
        "kafka.custom.password": SECRET,
        "kafka.custom.id": with_text(ENVIRONMENT, "${env:CLIENT}"),
        "kafka.custom.rack": "rack-1",
    }
    arguments: Any = node(file, "sink", "cleaned").options["arguments"]
    assert arguments == {
        "key": with_text(SECRET, "${secret:kafka/password}"),
        "more": {"inner": with_text(SECRET, "${secret:kafka/inner}"), "plain": 1},
        "list": [with_text(ENVIRONMENT, "${env:TOKEN}")],
    }
    assert node(file, "table", "counts").options["group_by"] == [
        with_text(ENVIRONMENT, "concat(id, '${env:TOKEN}') as tagged"),
        with_text(SECRET, "'${secret:kafka/password}' as p"),
    ]
    assert node(file, "sink", "sink").places == {"topic": ("kafka://**********:9092/out",)}


def test_settings_of_a_catalog_are_kept_without_those_that_are_called_as_secrets_are(tmp_path: Path) -> None:
    (tmp_path / "gem-bundle.toml").write_text('[check]\nspark_version = "4.1"')  # Iceberg's newest
    file = tmp_path / "p.yaml"
    file.write_text(
        """
        pipeline: p
        sources: {ticks: {gem: rate}}
        targets:
          lake:
            gem: table
            input: ticks
            options:
              table: lake.web.ticks
              catalog:
                kind: rest
                uri: http://h
                settings: {s3.secret-access-key: written-out, io-impl: a.B}
        """
    )
    catalog: Any = node(file, "lake", "lake").options["catalog"]
    assert catalog["settings"] == {"s3.secret-access-key": SECRET, "io-impl": "a.B"}


@pytest.mark.parametrize("target", ["table", "sink"])
def test_a_plan_without_secrets_makes_the_same_record_as_a_run(file: Path, target: str) -> None:
    assert version(file, target).is_same(version(file, target, secrets=False))


def test_an_option_that_is_declared_a_secret_is_none_in_the_record(file: Path) -> None:
    options = {
        "sasl_username": "me",
        "sasl_password": "typed-in",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
    }
    listed = "".join(f"\n      {key}: {value}" for key, value in options.items())
    edited(file, "      subscribe: [clicks]", f"      subscribe: [clicks]{listed}")
    edited(file, '        kafka.custom.jaas.config: login user="me" password="${secret:kafka/within}";\n', "")
    clicks = node(file, "sink", "clicks")
    assert clicks.options["sasl_username"] == "me"
    assert clicks.options["sasl_password"] == SECRET
    assert "typed-in" not in json.dumps(asdict(clicks))


def test_logins_in_urls_are_left_out(file: Path) -> None:
    edited(file, "path: in,", 'path: "s3a://key:pass@bucket/in",')
    found = node(file, "table", "files")
    assert found.places == {"path": ("s3a://bucket/in",)}
    assert found.options["path"] == "s3a://bucket/in"


def test_numbers_of_the_environment_are_kept(file: Path) -> None:
    edited(file, "path: in,", "path: in, maxFilesPerTrigger: '${env:FILES}',")
    ENVIRONMENT_OF_RUN["FILES"] = "7"
    assert node(file, "table", "files").options["max_files_per_trigger"] == 7


def test_projects_settings_and_those_of_gems_count_and_the_pipelines_win(file: Path) -> None:
    (file.parent / "gem-bundle.toml").write_text(
        dedent("""
        [spark]
        spark.sql.shuffle.partitions = 9
        spark.sql.streaming.minBatchesToRetain = 5
        spark.sql.streaming.stateStore.compression.codec = "zstd"
        """)
    )
    settings = version(file, "table").settings
    assert settings["spark.sql.shuffle.partitions"] == "3"
    assert settings["spark.sql.streaming.stateStore.compression.codec"] == "zstd"
    assert "spark.sql.streaming.minBatchesToRetain" not in settings


def test_gems_and_plugins_get_texts_of_the_environment_as_plain_ones(file: Path) -> None:
    edited(file, "password: ${secret:kafka/password}", "password: ${env:TOKEN}")
    checked = check_file(file, LoadOptions(environment=ENVIRONMENT_OF_RUN))
    assert checked.plan is not None, checked.diagnostics
    arguments = checked.plan.gems["cleaned"].options.arguments  # type: ignore[attr-defined]
    # Spark takes no other kind of text for a string, and what is pickled needs no gem-bundle.
    assert [type(arguments["key"]), type(arguments["list"][0])] == [str, str]
    assert type(checked.plan.definition.values["password"]) is str
    assert all(type(value) is str for value in checked.plan.definition.spark.values())


HOSTS = "b1.corp.internal:9092,b2.corp.internal"


def made_of(text: str, value: str, *, looked_up: bool) -> VersionRecord:
    environment = {"GEM_BUNDLE_SECRET_A_B": value, "GEM_BUNDLE_SECRET_A_HOSTS": HOSTS}
    environment |= {"VALUE": value, "FOLDER": "in/x"}
    document = parse(dedent(text), "shop.yaml")
    secrets = SecretStore(environment) if looked_up else None
    options = LoadOptions(environment=environment, secrets=secrets)
    checked = check_definition(load_values(document.values, document, Path("/shop"), "shop.yaml", options))
    assert checked.plan is not None, checked.diagnostics
    return version_of(checked.plan, "out")


def texts_of(version: VersionRecord) -> str:
    # Without when it was, which may have a secret's digits in it.
    return json.dumps(asdict(replace(version, started=""))).lower()


TOPICS = """
pipeline: shop
sources: {clicks: {gem: kafka, options: {bootstrap_servers: "${secret:a/hosts}:9092", subscribe: "${secret:a/b}"}}}
targets: {out: {gem: noop, input: clicks}}
"""
FILES = """
pipeline: shop
sources: {clicks: {gem: file, options: {format: text, path: "PATH"}}}
targets: {out: {gem: noop, input: clicks}}
"""
MOST = """
pipeline: shop
sources: {clicks: {gem: file, options: {format: json, path: data, schema: "id string, n int"}}}
transforms:
  most: {gem: sql, input: clicks, options: {query: "select id, max_by(n, 'REFERENCE') from clicks group by id"}}
targets: {out: {gem: noop, input: most, output_mode: update}}
"""
ONCE = """
pipeline: shop
sources: {clicks: {gem: file, options: {format: json, path: data, schema: "id string, n int"}}}
transforms:
  named: {gem: select, input: clicks, options: {columns: ["concat(id, 'REFERENCE')", n]}}
  once: {gem: deduplicate, input: named}
targets: {out: {gem: noop, input: once}}
"""


def test_of_a_secret_that_is_a_list_no_place_is_kept_and_nothing_has_changed() -> None:
    ran = made_of(TOPICS, "payroll,bonus", looked_up=True)
    assert "payroll" not in texts_of(ran)
    assert "bonus" not in texts_of(ran)
    assert "corp" not in texts_of(ran)
    assert ran.nodes[0].places == {"subscribe": ("kafka://**********:9092/**********",)}
    assert ran.is_same(made_of(TOPICS, "", looked_up=False))
    assert ran.is_same(made_of(TOPICS, "value-of-another", looked_up=True))


@pytest.mark.parametrize("path", ["${secret:a/b}", "${env:FOLDER}/${secret:a/b}/"])
def test_a_path_that_is_a_secret_is_not_kept_however_it_is_written(path: str) -> None:
    text = FILES.replace("PATH", path)
    ran = made_of(text, "./private/./payroll/", looked_up=True)
    assert "payroll" not in texts_of(ran)
    assert ran.is_same(made_of(text, "", looked_up=False))
    # What the environment says of a place is compared.
    assert ("/in/x/" in ran.nodes[0].places["path"][0]) == ("FOLDER" in path)


SPELT = ["Pa55Word", "Pa\\55Word", "Pa''55", "Pa55Word/", "pA"]


@pytest.mark.parametrize("text", [MOST, ONCE])
@pytest.mark.parametrize("value", SPELT)
def test_nothing_that_is_made_of_a_secret_is_kept(text: str, value: str) -> None:
    text = text.replace("REFERENCE", "${secret:a/b}")
    ran = made_of(text, value, looked_up=True)
    assert "55" not in texts_of(ran)
    assert "pa55" not in texts_of(ran)
    assert ran.operators[-1].keys
    assert ran.is_same(made_of(text, value, looked_up=False))
    assert ran.is_same(made_of(text, "value-of-another", looked_up=True))


@pytest.mark.parametrize("text", [MOST, ONCE])
@pytest.mark.parametrize("value", SPELT[:-1])
def test_no_text_of_a_variable_is_kept_in_another_spelling(text: str, value: str) -> None:
    text = text.replace("REFERENCE", "${env:VALUE}")
    assert "55" not in texts_of(made_of(text, value, looked_up=True))


def test_a_secret_that_no_text_can_stand_for_is_searched_for_in_what_was_made_of_it() -> None:
    text = MOST.replace("format: json", 'format: json, max_file_age: "${secret:a/b}"').replace(
        "REFERENCE", "3 HOURS and more"
    )
    ran = made_of(text, "3 Hours", looked_up=True)
    assert "3 hours" not in texts_of(replace(ran, nodes=ran.nodes[:1], operators=ran.operators[-1:]))
