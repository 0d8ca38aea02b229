"""A processor's state whose schema is another one: what is said of the edit, and what Spark does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gem_bundle.changes.against import plan_against
from gem_bundle.changes.planning import plan_changes
from gem_bundle.check import check_file
from gem_bundle.check.streaming.processors import processor_states
from tests.checked import plan_of
from tests.integration.pipelines import add_rows, run, write_pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundle.changes.model import Change

PIPELINE = """
pipeline: sums
spark: {{spark.sql.shuffle.partitions: 2{setting}}}
sources:
  readings: {{gem: file, options: {{path: in, format: json, schema: "device string, value long"}}}}
transforms:
  summed:
    gem: stateful
    input: readings
    options: {{processor: "{module}:Own", group_by: device, schema: "device string, seen boolean"}}
targets:
  out: {{gem: delta, input: summed, options: {{path: out}}}}
"""
PROCESSOR = """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class Own(StatefulProcessor):
    def init(self, handle):
        self.kept = handle.{state}

    def handleInputRows(self, key, rows, timerValues):
        seen = self.kept.exists()
        {keep}
        yield Row(device=key[0], seen=seen)

    def close(self):
        pass
"""
AVRO = ", spark.sql.streaming.stateStore.encodingFormat: avro"
VALUE = 'getValueState("kept", "{}")'.format
CASES = [
    ("", VALUE("n int"), VALUE("n int, m string"), "it was `n int` and is `n int, m string`"),
    ("", VALUE("n int"), VALUE("n bigint"), "it was `n int` and is `n bigint`"),
    ("", VALUE("n int"), VALUE("m int"), ""),
    ("", VALUE("n int"), 'getValueState("other", "n string")', ""),
    ("", VALUE("n struct<a: int>"), VALUE("n struct<b: int>"), ""),
    ("", VALUE("n int"), 'getListState("kept", "n int")', "it was a value and is a list"),
    (AVRO, VALUE("n int"), VALUE("n int, m string"), ""),
    (AVRO, VALUE("n int, m string"), VALUE("n bigint"), ""),
    (AVRO, VALUE("n int"), VALUE("n string"), "`n` was int and is string"),
    (AVRO, VALUE("n bigint"), VALUE("n int"), "`n` was bigint and is int"),
    (
        AVRO,
        'getMapState("kept", "k int", "n int")',
        'getMapState(stateName="kept", userKeySchema="k bigint", valueSchema="n int")',
        "its keys were `k int` and are `k bigint`",
    ),
]


def processor(state: str, keep: str = "pass") -> str:
    return PROCESSOR.format(state=state, keep=keep)


def keeping(columns: str) -> str:
    """What puts something into a value."""
    values = ["None" for _ in columns.split(",")]
    return f"self.kept.update(({', '.join(values)},))"


def refusals(changes: Sequence[Change]) -> list[str]:
    return [change.message for change in changes if change.code == "GB422"]


@pytest.mark.parametrize(("setting", "before", "after", "why"), CASES)
def test_what_is_said_of_another_schema(
    setting: str, before: str, after: str, why: str, tmp_path: Path
) -> None:
    file = write_pipeline(tmp_path, PIPELINE.format(setting=setting, module="own_states"))
    (tmp_path / "in").mkdir()
    plans = []
    for number, state in enumerate((before, after)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "own_states.py").write_text(processor(state))
        (folder / "in").mkdir()
        plans.append(check_file(write_pipeline(folder, file.read_text())).plan)
    old, new = plans
    assert old is not None
    assert new is not None

    (found,) = plan_against(new, old)

    told = refusals(found.changes)
    assert [why in message for message in told] == [True] * bool(why)
    assert any(change.code == "GB424" for change in found.changes) is not bool(why)


def test_what_is_not_written_out_is_not_known(tmp_path: Path) -> None:
    states = (
        'getValueState("a", "n int"); handle.getListState(NAME, "n int"); handle.getListState("b", SCHEMA)'
    )
    (tmp_path / "own_states.py").write_text(processor(states))
    assert processor_states("own_states:Own", tmp_path) == {"a": ("value", "n int")}
    assert processor_states("no_states:Own", tmp_path) == {}


@pytest.mark.spark
@pytest.mark.sample(2, rule="another schema of a processor's state")
@pytest.mark.parametrize(
    ("setting", "before", "after"),
    [
        ("", "n int", "n int, m string"),
        ("", "n int", "n bigint"),
        ("", "n int", "m int"),
        (AVRO, "n int", "n int, m string"),
        (AVRO, "n int, m string", "n bigint"),
        (AVRO, "n int", "n string"),
    ],
)
def test_what_is_refused_is_what_spark_refuses(
    spark: SparkSession, setting: str, before: str, after: str, tmp_path: Path, user_modules: Path
) -> None:
    module = f"states_{abs(hash((setting, before, after)))}"
    file = write_pipeline(tmp_path, PIPELINE.format(setting=setting, module=module))
    for number, columns in enumerate((before, after)):
        # Python keeps a module that it has imported; executors import the one that is on their path.
        named = f"{module}_{number}"
        file.write_text(
            file.read_text().replace(f"{module}:", f"{named}:").replace(f"{module}_0:", f"{named}:")
        )
        code = processor(VALUE("{}").format(columns), keeping(columns))
        for folder in (tmp_path, user_modules):
            (folder / f"{named}.py").write_text(code)
        add_rows(tmp_path / "in", f"{number}.json", [{"device": "a", "value": 1}])
        if number == 0:
            assert run(file, available_now=True).ok
    plan = plan_of(file)
    ((changes,), _) = plan_changes(plan)

    accepted = tuple((change.code, "") for change in changes.changes)
    assert run(file, available_now=True, accept=accepted).ok is not bool(refusals(changes.changes))
