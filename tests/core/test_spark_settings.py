"""Which settings a session gets: defaults by master and version, layers, lists."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from gem_bundle.check import check_definition
from gem_bundle.plugins import load_registry
from gem_bundle.run.environment import KEEPS_LIMITS, needed_settings
from gem_bundle.run.spark_settings import (
    SessionRequest,
    Setting,
    contains,
    cores,
    default_settings,
    is_local,
    merge_settings,
    settings_to_change,
    settings_to_start,
    streaming_defaults,
)
from tests.core.checking import load

EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
OFFSETS = "spark.sql.streaming.offsetLog.formatVersion"
EMPTY = "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart"
RESTART = "spark.sql.streaming.checkUnfinishedRepartitionOnRestart"
COLUMNAR = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
STORE = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"
REQUEST = SessionRequest("clicks")


@pytest.fixture(autouse=True)
def no_machine_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which `spark-defaults.conf` is looked for."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    return tmp_path / "spark-defaults.conf"


@pytest.mark.parametrize(
    ("version", "settings"),
    [
        ("4.0.1", {}),
        ("4.1.1", {}),
        ("4.2.0", {EVOLUTION: True, OFFSETS: 2, EMPTY: False, RESTART: False, COLUMNAR: False}),
        ("4.2.1", {EVOLUTION: True, OFFSETS: 2, EMPTY: False}),
        ("4.3.0.dev1", {EVOLUTION: True, OFFSETS: 2, EMPTY: False}),
        ("5.0.0", {EVOLUTION: True, OFFSETS: 2, EMPTY: False}),
        ("unknown", {}),
    ],
)
def test_what_streams_need_goes_with_the_version(version: str, settings: dict[str, object]) -> None:
    assert streaming_defaults(version) == settings


@pytest.mark.parametrize(
    ("master", "partitions"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[ 3 , 4]", 3),
        ("local-cluster[2,3,1024]", 6),
        ("local[*]", len(os.sched_getaffinity(0))),
        ("local[*,2]", len(os.sched_getaffinity(0))),
    ],
)
def test_a_local_spark_gets_one_shuffle_partition_for_each_core(master: str, partitions: int) -> None:
    assert is_local(master)
    assert cores(master) == partitions
    settings = default_settings(master, "4.2.0")
    assert settings[PARTITIONS] == partitions
    assert settings["spark.ui.enabled"] is False
    assert STORE not in settings


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host:6443"])
def test_a_cluster_gets_rocksdb_and_sparks_own_partitions(master: str) -> None:
    settings = default_settings(master, "4.2.0")
    assert not is_local(master)
    assert str(settings[STORE]).endswith(".RocksDBStateStoreProvider")
    assert PARTITIONS not in settings
    assert "spark.ui.enabled" not in settings


def test_a_local_spark_of_4_2_renames_checkpoint_files_without_a_process_for_each() -> None:
    key = "spark.sql.streaming.checkpointFileManagerClass"
    assert key in default_settings("local[2]", "4.2.0")
    assert key not in default_settings("local[2]", "4.1.1")
    assert key not in default_settings("yarn", "4.2.0")


def test_a_brief_session_compiles_less() -> None:
    key = "spark.driver.defaultJavaOptions"
    brief = SessionRequest("clicks", brief=True)
    options = str(settings_to_start(brief, "4.2.0")[key].value).split()
    assert options == ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"]
    assert key not in settings_to_start(REQUEST, "4.2.0")
    assert key not in settings_to_start(brief, "4.2.0", {"spark.master": "yarn"})


def test_later_layers_win(no_machine_defaults: Path) -> None:
    request = SessionRequest("clicks")
    assert settings_to_start(request, "4.2.0")["spark.master"] == Setting(
        "spark.master", "local[*]", "default"
    )
    assert settings_to_start(request, "4.2.0")[PARTITIONS].origin == "default"
    no_machine_defaults.write_text(f"{PARTITIONS}  11\n")
    assert settings_to_start(request, "4.2.0")[PARTITIONS] == Setting(PARTITIONS, "11", "environment")
    request = replace(request, defaults={PARTITIONS: "12"})
    assert settings_to_start(request, "4.2.0")[PARTITIONS] == Setting(PARTITIONS, "12", "project")
    request = replace(request, gem_settings={PARTITIONS: "13"})
    assert settings_to_start(request, "4.2.0")[PARTITIONS] == Setting(PARTITIONS, "13", "gem")
    request = replace(request, settings={PARTITIONS: 14})
    assert settings_to_start(request, "4.2.0")[PARTITIONS] == Setting(PARTITIONS, "14", "pipeline")
    assert settings_to_start(request, "4.2.0", {PARTITIONS: "15"})[PARTITIONS] == Setting(
        PARTITIONS, "15", "environment"
    )


def test_the_master_that_wins_decides_about_the_defaults() -> None:
    request = SessionRequest("clicks", settings={"spark.master": "local[3]"})
    assert settings_to_start(request, "4.2.0")[PARTITIONS].value == "3"
    submitted = {"spark.master": "yarn", "spark.executor.memory": "8g"}
    settings = settings_to_start(request, "4.2.0", submitted)
    assert settings["spark.master"] == Setting("spark.master", "yarn", "environment")
    assert PARTITIONS not in settings
    assert STORE in settings
    assert "spark.executor.memory" not in settings


def test_a_machines_defaults_are_read_as_spark_reads_them(no_machine_defaults: Path) -> None:
    no_machine_defaults.write_text(
        "# spark.master  yarn\n"
        "spark.master            spark://host:7077\n"
        "spark.executor.memory=4g\n"
        "  spark.eventLog.dir : hdfs://host/logs\n"
        "spark.driver.extraJavaOptions -Da=b -Dc=d\n"
        "other 1\n"
    )
    settings = settings_to_start(REQUEST, "4.2.0")
    found = {key: s.value for key, s in settings.items() if s.origin == "environment"}
    assert found == {
        "spark.master": "spark://host:7077",
        "spark.executor.memory": "4g",
        "spark.eventLog.dir": "hdfs://host/logs",
        "spark.driver.extraJavaOptions": "-Da=b -Dc=d",
    }


def test_lists_are_joined_and_each_item_kept_once() -> None:
    key = "spark.sql.extensions"
    merged = merge_settings(
        [
            ("project", {key: "a.A, b.B", "spark.x": "1"}),
            ("gem", {key: "b.B,c.C", "spark.x": "2"}),
            ("pipeline", {key: "a.A"}),
        ]
    )
    assert merged[key] == Setting(key, "a.A,b.B,c.C", "gem")
    assert merged["spark.x"] == Setting("spark.x", "2", "gem")


def test_values_of_the_pipeline_file_become_text() -> None:
    merged = merge_settings([("pipeline", {"spark.a": True, "spark.b": 8, "spark.jars": ["x", "y"]})])
    assert {key: s.value for key, s in merged.items()} == {
        "spark.a": "true",
        "spark.b": "8",
        "spark.jars": "x,y",
    }


def test_jars_and_module_folders_of_a_local_spark(tmp_path: Path) -> None:
    request = SessionRequest(
        "clicks",
        settings={"spark.jars": "/own.jar", "spark.executorEnv.PYTHONPATH": "/own"},
        jars=[Path("/cache/a.jar"), Path("/cache/b.jar")],
        module_folders=[tmp_path],
    )
    settings = settings_to_start(request, "4.2.0")
    assert settings["spark.jars"].value == "/cache/a.jar,/cache/b.jar,/own.jar"
    assert settings["spark.executorEnv.PYTHONPATH"].value == f"{tmp_path}{os.pathsep}/own"


def test_executors_of_a_cluster_do_not_have_this_machines_folders(tmp_path: Path) -> None:
    request = SessionRequest("clicks", settings={"spark.master": "yarn"}, module_folders=[tmp_path])
    assert "spark.executorEnv.PYTHONPATH" not in settings_to_start(request, "4.2.0")


def test_a_session_that_is_there_keeps_its_place_and_its_partitions() -> None:
    request = SessionRequest(
        "clicks",
        settings={"spark.master": "local[7]", "spark.app.name": "x", "spark.a": "1"},
        jars=[Path("/cache/a.jar")],
    )
    changes = settings_to_change(request, "4.2.0", "local[2]")
    assert set(changes) == {EVOLUTION, OFFSETS, EMPTY, RESTART, COLUMNAR, "spark.a", "spark.jars"}
    assert STORE in settings_to_change(request, "4.1.0", "")


@pytest.mark.parametrize(
    ("key", "has", "wants", "answer"),
    [
        ("spark.a", "1", "1", True),
        ("spark.a", None, "1", False),
        ("spark.sql.extensions", "a.A,b.B", "b.B", True),
        ("spark.sql.extensions", "a.A", "a.A,b.B", False),
        ("spark.jars", "file:///tmp/x/a.jar", "/cache/a.jar", True),
        ("spark.jars", "", "/cache/a.jar", False),
    ],
)
def test_whether_a_session_has_what_is_wanted(key: str, has: str | None, wants: str, answer: bool) -> None:
    assert contains(key, has, wants) is answer


LIMITED = """
pipeline: limited
mode: MODE
sources:
  orders: {gem: file, options: {path: orders, format: json, schema: "id int"}}
transforms:
  few: {gem: limit, input: orders, options: {rows: 7}}
  same: {gem: filter, input: orders, options: {condition: id > 0}}
targets:
  out: {gem: noop, input: few}
"""


@pytest.mark.parametrize(
    ("mode", "nodes", "asked"),
    [("stream", None, True), ("stream", ["orders", "same"], False), ("batch", None, False)],
)
def test_a_stream_that_is_limited_asks_for_what_keeps_its_count(
    mode: str, nodes: list[str] | None, asked: bool
) -> None:
    plan = check_definition(load(LIMITED.replace("MODE", mode)), load_registry()).plan
    assert plan is not None
    assert needed_settings(plan, nodes) == (KEEPS_LIMITS if asked else {})
    mine = {"spark.sql.optimizer.excludedRules": "org.example.Mine"}
    merged = merge_settings([("gem", KEEPS_LIMITS), ("pipeline", mine)])
    (setting,) = merged.values()
    assert setting.value.split(",")[-1] == "org.example.Mine"
    assert len(setting.value.split(",")) == 4
