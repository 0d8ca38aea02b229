"""What can go wrong when a run starts: a diagnostic with a place and a remedy, never a traceback."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gem_bundle.errors import PipelineError
from gem_bundle.run.elsewhere import has_class
from tests.checked import plan_of
from tests.integration.pipelines import add_rows, command, events, finish, run, write_pipeline
from tests.samples import some_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from gem_bundle.diagnostics import Diagnostic

a_failing_run = some_of("how a failing run ends", 1)

pytestmark = pytest.mark.spark

TEXT = """
pipeline: failing
sources:
  orders:
    gem: file
    options: {path: orders, format: json, schema: "id int", max_files_per_trigger: 1}
targets:
  out: {gem: delta, input: orders, options: {path: out}}
"""


def refused(file: Path, **options: object) -> list[Diagnostic]:
    with pytest.raises(PipelineError) as raised:
        run(file, **options)
    found = list(raised.value.diagnostics)
    for diagnostic in found:
        assert diagnostic.hint, diagnostic
        assert "Traceback" not in str(diagnostic)
    return found


def test_a_missing_path(spark: SparkSession, tmp_path: Path) -> None:
    (found,) = refused(write_pipeline(tmp_path, TEXT))
    assert (found.code, found.node, found.line) == ("GB505", "orders", 6)
    assert str(tmp_path / "orders") in found.message


def test_a_session_that_is_there_lacks_jars(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path / "orders", "1.json", [{"id": 1}])
    shop = 'url: "jdbc:h2:./shop", table: orders, driver: org.h2.Driver, jar: "com.h2database:h2:2.3.232"'
    file = write_pipeline(tmp_path, f"{TEXT}  shop: {{gem: jdbc, input: orders, options: {{{shop}}}}}\n")
    (found,) = refused(file, available_now=True)
    assert (found.code, found.node, found.line) == ("GB502", "shop", 9)
    assert "the session that runs has no `org.h2.Driver`, which the gem `jdbc` needs" in found.message
    assert "with `--packages com.h2database:h2:2.3.232`." in found.hint
    assert not (tmp_path / "out").exists(), "no other target has started"


WITH_JARS = """
pipeline: jars
sources:
  topic: {gem: kafka, options: {bootstrap_servers: "localhost:1", subscribe: clicks}}
  files: {gem: file, options: {path: in, format: avro, schema: "value int"}}
  lake: {gem: delta, options: {path: lake}}
transforms:
  read:
    gem: from_avro
    input: topic
    options: {column: value, schema: {type: record, name: click, fields: [{name: id, type: int}]}}
  packed: {gem: to_avro, input: files, options: {columns: [value]}}
targets:
  sent: {gem: kafka, input: packed, options: {bootstrap_servers: "localhost:1", topic: out}}
  kept: {gem: delta, input: read, options: {path: out}}
  avro: {gem: file, input: lake, options: {path: avro, format: avro}}
  rows: {gem: jdbc, input: files, options: {url: "jdbc:postgresql://localhost/shop", table: rows}}
"""


def test_the_classes_that_gems_ask_for_are_in_their_jars(spark: SparkSession, tmp_path: Path) -> None:
    plan = plan_of(write_pipeline(tmp_path, WITH_JARS))
    for name, gem in plan.gems.items():
        assert list(gem.jars()), name
        assert list(gem.jar_classes()), name
        assert [found for found in gem.jar_classes() if not has_class(spark, found)] == [], name
    assert not has_class(spark, "org.example.Nothing")


def test_a_missing_secret_says_every_place_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEM_BUNDLE_SECRETS_DIR", str(tmp_path / "secrets"))
    text = TEXT.replace("path: orders", "path: '${secret:store/folder}'")
    (found,) = refused(write_pipeline(tmp_path, text))
    assert (found.code, found.line) == ("GB015", 6)
    assert "GEM_BUNDLE_SECRET_STORE_FOLDER" in found.hint
    assert str(tmp_path / "secrets/store/folder") in found.hint
    assert "Databricks" in found.hint


def test_a_secret_is_used_and_never_shown(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEM_BUNDLE_SECRET_STORE_FOLDER", "hush-hush")
    text = TEXT.replace("path: orders", "path: '${secret:store/folder}'")
    (found,) = refused(write_pipeline(tmp_path, text))
    assert found.code == "GB505"
    assert "hush" not in str(found)


@a_failing_run
def test_a_checkpoint_in_use(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path / "orders", "1.json", [{"id": 1}])
    file = write_pipeline(tmp_path, TEXT)
    running = command("run", file)
    try:
        assert next(event for event in events(running) if event["event"] == "progress")["rows_in"] == 1
        (found,) = refused(file, available_now=True)
        assert (found.code, found.node, found.line) == ("GB401", "out", 8)
        assert f"process {running.pid}" in found.message
    finally:
        running.send_signal(signal.SIGTERM)
        status, out, _ = finish(running)
    assert status == 0
    assert out == ""
    assert run(file, available_now=True).rows_in == 0


@a_failing_run
def test_java_is_killed_under_a_run(spark: SparkSession, tmp_path: Path) -> None:
    """As the system does it when memory runs out."""
    add_rows(tmp_path / "orders", "1.json", [{"id": 1}])
    file = write_pipeline(tmp_path, TEXT)
    running = command("run", file, "--report", tmp_path / "report.json")
    assert next(event for event in events(running) if event["event"] == "progress")["rows_in"] == 1
    (java,) = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    os.kill(int(java), signal.SIGKILL)
    status, out, err = finish(running)
    assert (status, out) == (1, ""), err
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["status"], report["totals"]["rows_in"]) == ("failed", 1)
    (found,) = report["diagnostics"]
    assert (found["code"], found["line"]) == ("GB524", 2)
    assert f"error[GB524]: {found['message']}" in err
    assert "Traceback" not in err
    add_rows(tmp_path / "orders", "2.json", [{"id": 2}])
    assert run(file, available_now=True).ok
    assert {row.id for row in spark.read.format("delta").load(str(tmp_path / "out")).collect()} == {1, 2}


def test_a_damaged_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path / "orders", "1.json", [{"id": 1}])
    file = write_pipeline(tmp_path, TEXT)
    run(file, available_now=True)
    checkpoint = tmp_path / "checkpoints/failing/out"
    (checkpoint / "offsets/0").write_text("v2\n{")
    (found,) = refused(file, available_now=True)
    assert (found.code, found.node, found.line) == ("GB402", "out", 8)
    assert "offsets/0" in found.message


def test_damage_that_only_spark_sees(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path / "orders", "1.json", [{"id": 1}])
    file = write_pipeline(tmp_path, TEXT)
    run(file, available_now=True)
    (tmp_path / "checkpoints/failing/out/offsets/0").write_text("v2\n{}\nneither an offset nor json")
    report = run(file, available_now=True)
    assert report.status == "failed"
    assert [d.node for d in report.diagnostics] == ["out"]
    assert "Traceback" not in str(report.diagnostics[0])


@pytest.mark.parametrize(
    ("reference", "code", "says"),
    [
        ("nowhere_to_be_found:clean", "GB506", "no Python module `nowhere_to_be_found`"),
        ("my_functions:claen", "GB506", "`my_functions` has no `claen`"),
        ("my_functions:fails", "GB507", "ZeroDivisionError"),
        ("my_broken_module:clean", "GB507", "SyntaxError"),
    ],
)
def test_python_functions(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reference: str,
    code: str,
    says: str,
) -> None:
    # With the names of another module, so that a check can't tell which there are.
    (tmp_path / "my_functions.py").write_text(
        "from os.path import *\n\ndef clean(df):\n    return df\n\ndef fails(df):\n    return 1 / 0\n"
    )
    (tmp_path / "my_broken_module.py").write_text("def clean(df:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "my_functions", raising=False)
    add_rows(tmp_path / "orders", "1.json", [{"id": 1}])
    text = TEXT.replace("input: orders", "input: clean") + (
        f"transforms:\n  clean: {{gem: python, input: orders, options: {{function: '{reference}'}}}}\n"
    )
    report = run(write_pipeline(tmp_path, text), available_now=True)
    (found,) = report.diagnostics
    assert (found.code, found.node) == (code, "clean")
    assert says in found.message
    assert found.line == 10
    assert "Traceback" not in str(found)


def test_a_row_that_spark_can_not_compute(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path / "orders", "1.json", [{"id": 1}])
    text = TEXT.replace("input: orders", "input: checked") + (
        "transforms:\n  checked: {gem: filter, input: orders, options: "
        "{condition: \"id < 0 or raise_error('an order without a number') is null\"}}\n"
    )
    report = run(write_pipeline(tmp_path, text), available_now=True)
    (found,) = report.diagnostics
    assert (found.code, found.node, found.line) == ("GB508", "out", 8)
    assert found.message == "target `out`: an order without a number"
    assert "USER_RAISED_EXCEPTION" in found.hint


def test_no_java(tmp_path: Path) -> None:
    add_rows(tmp_path / "orders", "1.json", [{"id": 1}])
    file = write_pipeline(tmp_path, TEXT)
    empty = tmp_path / "bin"
    empty.mkdir()
    status, _, err = finish(command("run", file, PATH=str(empty), JAVA_HOME=str(tmp_path)))
    assert status == 1
    assert "error[GB501]" in err
    assert "Java 17" in err
    assert "Traceback" not in err


def test_no_kafka_at_the_address(spark: SparkSession, tmp_path: Path) -> None:
    text = """
pipeline: unreachable
sources:
  clicks: {gem: kafka, options: {bootstrap_servers: "127.0.0.1:1", subscribe: clicks}}
targets:
  out: {gem: noop, input: clicks}
"""
    (found,) = refused(write_pipeline(tmp_path, text))
    assert (found.code, found.node) == ("GB503", "clicks")
    assert "127.0.0.1:1" in found.message


def test_a_failing_run_exits_with_1_and_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "failing_target.py").write_text(
        "def deliver(df, batch_id):\n    raise ValueError('no such order')\n"
    )
    add_rows(tmp_path / "orders", "1.json", [{"id": 1}])
    text = TEXT.replace(
        "gem: delta, input: orders, options: {path: out}",
        "gem: foreach_batch, input: orders, options: {function: 'failing_target:deliver'}",
    )
    file = write_pipeline(tmp_path, text)
    report = tmp_path / "report.json"
    status, out, err = finish(command("run", file, "--report", report))
    assert status == 1
    assert out == ""
    lines = [line for line in err.splitlines() if not line.startswith("{")]
    assert lines[0].startswith(f"{file}:8:3: error[GB507]: target `out`: ")
    assert "ValueError: no such order" in lines[0]
    assert len(lines) <= 3
    assert '"status": "failed"' in report.read_text()
