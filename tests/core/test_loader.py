"""Pipeline files: their shape, and what is left of them when they are read."""

from pathlib import Path
from typing import Any

import pytest

from gem_bundle.pipeline.loader import LoadOptions, load_file
from gem_bundle.pipeline.model import Definition, Input, Trigger
from tests.core.checking import FILE, found, load, marked

WHOLE = """\
x-defaults: &defaults
  rows_per_second: 5
pipeline: clicks_per_minute
version: 1.10
description: Clicks per page.
parameters:
  topic: clicks
  speed: 7
profiles:
  fast: {speed: 70}
spark:
  spark.sql.shuffle.partitions: 8
  spark.sql.ansi.enabled: true
  spark.x: 0.10
  spark.y: ${speed}
checkpoints: state
sources:
  clicks:
    gem: topic
    options: {topic: "${topic}-v1", limit: "${speed}"}
  pages: {gem: pages, mode: batch, description: Static., options: {<<: *defaults}}
transforms:
  parsed: {gem: shape, input: clicks}
  joined: {gem: pair, inputs: [parsed, pages]}
  named: {gem: pair, inputs: {left: joined, right: split.good}}
  split: {gem: split, input: parsed}
targets:
  table:
    gem: sink
    input: split.bad
    output_mode: complete
    trigger: {processing_time: 10 seconds}
  other: {gem: sink, input: named}
"""


def definition(text: str, **options: Any) -> Definition:
    loaded = load(text, LoadOptions(**{"environment": {}, **options}))
    assert loaded.diagnostics == []
    assert loaded.definition is not None
    return loaded.definition


def test_a_whole_pipeline() -> None:
    pipeline = definition(WHOLE, profile="fast")

    assert (pipeline.name, pipeline.version, pipeline.mode) == (
        "clicks_per_minute",
        "1.10",
        "stream",
    )
    assert pipeline.description == "Clicks per page."
    assert pipeline.checkpoints == "/data/state"
    assert pipeline.checkpoint("table") == "/data/state/clicks_per_minute/table"
    assert pipeline.spark == {
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.ansi.enabled": "true",
        "spark.x": "0.10",
        "spark.y": "70",
    }
    assert list(pipeline.nodes) == [
        "clicks",
        "pages",
        "parsed",
        "joined",
        "named",
        "split",
        "table",
        "other",
    ]
    clicks, pages = pipeline.of_kind("source")
    assert (clicks.mode, clicks.options) == ("stream", {"topic": "clicks-v1", "limit": 70})
    assert (pages.mode, pages.options) == ("batch", {"rows_per_second": 5})
    assert pages.description == "Static."
    assert pipeline.nodes["joined"].inputs == (
        Input("parsed", None, "parsed", ("transforms", "joined", "inputs", 0)),
        Input("pages", None, "pages", ("transforms", "joined", "inputs", 1)),
    )
    assert pipeline.nodes["named"].inputs == (
        Input("joined", None, "left", ("transforms", "named", "inputs", "left")),
        Input("split", "good", "right", ("transforms", "named", "inputs", "right")),
    )
    table = pipeline.nodes["table"]
    assert table.inputs == (Input("split", "bad", "bad", ("targets", "table", "input")),)
    assert (table.output_mode, table.trigger) == (
        "complete",
        Trigger("processing_time", "10 seconds"),
    )
    other = pipeline.nodes["other"]
    assert (other.output_mode, other.trigger) == ("append", Trigger())


def test_the_least_a_pipeline_can_be() -> None:
    pipeline = definition("pipeline: p\nsources: {a: {gem: x}}\ntargets: {b: {gem: y, input: a}}")

    assert (pipeline.version, pipeline.mode, pipeline.description) == ("0.1.0", "stream", "")
    assert pipeline.checkpoints == "/data/checkpoints"
    assert pipeline.spark == {}


def test_in_a_batch_pipeline_sources_are_static() -> None:
    pipeline = definition(
        "pipeline: p\nmode: batch\nsources: {a: {gem: x}, b: {gem: x, mode: batch}}\n"
        "targets: {c: {gem: y, input: a}}"
    )

    assert [node.mode for node in pipeline.of_kind("source")] == ["batch", "batch"]


@pytest.mark.parametrize(
    ("root", "found"),
    [
        ("state", "/data/state"),
        ("/state", "/state"),
        ("s3a://bucket/state", "s3a://bucket/state"),
        ("dbfs:/state", "dbfs:/state"),
        ("file:/state", "file:/state"),
    ],
)
def test_checkpoints_are_relative_to_the_file(root: str, found: str) -> None:
    assert definition(f"pipeline: p\ncheckpoints: {root}").checkpoints == found


@pytest.mark.parametrize(
    ("written", "trigger"),
    [
        ("{available_now: true}", Trigger("available_now")),
        ("{once: true}", Trigger("once")),
        ("{processing_time: 1 minute}", Trigger("processing_time", "1 minute")),
        ("{processing_time: 1 minute, once: null}", Trigger("processing_time", "1 minute")),
        ("{continuous: 1 second}", Trigger("continuous", "1 second")),
        ("{real_time: 5 minutes}", Trigger("real_time", "5 minutes")),
        ("", Trigger()),
    ],
)
def test_triggers(written: str, trigger: Trigger) -> None:
    text = f"pipeline: p\ntargets:\n  t:\n    gem: y\n    input: a\n    trigger: {written}"

    assert definition(text).nodes["t"].trigger == trigger


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("▶- a", "GB005"),
        ("▶text", "GB005"),
        ("▶{}", "GB006"),
        ("▶version: 1.0.0", "GB006"),
        ("pipeline: p\n▶piepline: q", "GB004"),
        ("pipeline: p\n▶x: 1", "GB004"),
        ("pipeline: ▶[p]", "GB005"),
        ("pipeline: ▶5", "GB005"),
        ("pipeline:▶", "GB005"),
        ("pipeline: ▶Clicks", "GB017"),
        ("pipeline: ▶my-clicks", "GB017"),
        ("pipeline: ▶5clicks", "GB017"),
        ('pipeline: ▶"p\\n"', "GB017"),
        ("pipeline: p\nversion: ▶one", "GB005"),
        ("pipeline: p\nversion: ▶[1]", "GB005"),
        ("pipeline: p\nversion: ▶true", "GB005"),
        ("pipeline: p\nmode: ▶streaming", "GB005"),
        ("pipeline: p\nspark: ▶[a]", "GB005"),
        ("pipeline: p\nspark: {a: ▶[1]}", "GB005"),
        ("pipeline: p\nspark: {a: ▶}", "GB005"),
        ("pipeline: p\ncheckpoints: ▶5", "GB005"),
        ("pipeline: p\ndescription: ▶{a: 1}", "GB005"),
        ("pipeline: p\nsources: ▶[a]", "GB005"),
        ("pipeline: p\nsources: {a: ▶}", "GB005"),
        ("pipeline: p\nsources: {a: ▶rate}", "GB005"),
        ("pipeline: p\nsources: {▶a: {}}", "GB006"),
        ("pipeline: p\nsources: {a: {gem: ▶5}}", "GB005"),
        ("pipeline: p\nsources: {a: {gem: x, ▶option: {}}}", "GB004"),
        ("pipeline: p\nsources: {a: {gem: x, ▶input: b}}", "GB004"),
        ("pipeline: p\nsources: {a: {gem: x, options: ▶[1]}}", "GB005"),
        ("pipeline: p\nsources: {a: {gem: x, mode: ▶static}}", "GB005"),
        ("pipeline: p\nmode: batch\nsources: {a: {gem: x, mode: ▶stream}}", "GB005"),
        ("pipeline: p\nsources: {▶a__b: {gem: x}}", "GB017"),
        ("pipeline: p\nsources: {▶_a: {gem: x}}", "GB017"),
        ("pipeline: p\nsources: {▶a-b: {gem: x}}", "GB017"),
        ("pipeline: p\nsources: {▶a.b: {gem: x}}", "GB017"),
        ("pipeline: p\nsources: {▶1: {gem: x}}", "GB017"),
        ('pipeline: p\nsources: {▶"a\\n": {gem: x}}', "GB017"),
        ("pipeline: p\ntransforms: {▶a: {gem: x}}", "GB005"),
        ("pipeline: p\ntransforms: {▶a: {gem: x, input: b, inputs: [c]}}", "GB005"),
        ("pipeline: p\ntransforms: {▶a: {gem: x, inputs: []}}", "GB005"),
        ("pipeline: p\ntransforms: {a: {gem: x, input: ▶[b]}}", "GB005"),
        ("pipeline: p\ntransforms: {a: {gem: x, inputs: ▶b}}", "GB005"),
        ("pipeline: p\ntransforms: {a: {gem: x, inputs: [b, ▶5]}}", "GB005"),
        ("pipeline: p\ntransforms: {a: {gem: x, inputs: {l: ▶[b]}}}", "GB005"),
        ("pipeline: p\ntransforms: {a: {gem: x, inputs: {▶a b: c}}}", "GB017"),
        ("pipeline: p\ntransforms: {a: {gem: x, ▶imput: b}}", "GB004"),
        ("pipeline: p\ntargets: {▶a: {gem: x}}", "GB006"),
        ("pipeline: p\ntargets: {a: {gem: x, input: b, output_mode: ▶overwrite}}", "GB005"),
        ("pipeline: p\ntargets: {a: {gem: x, input: b, trigger: ▶{}}}", "GB005"),
        ("pipeline: p\ntargets: {a: {gem: x, input: b, trigger: ▶once}}", "GB005"),
        ("pipeline: p\ntargets: {a: {gem: x, input: b, trigger: {once: ▶false}}}", "GB005"),
        ("pipeline: p\ntargets: {a: {gem: x, input: b, trigger: ▶{once: }}}", "GB005"),
        ("pipeline: p\ntargets: {a: {gem: x, input: b, trigger: {▶onec: true}}}", "GB004"),
        (
            "pipeline: p\ntargets: {a: {gem: x, input: b, trigger: ▶{once: true, real_time: 1 day}}}",
            "GB005",
        ),
        ("pipeline: p\ntargets: {a: {gem: x, input: b, trigger: {real_time: ▶5m}}}", "GB005"),
        ("pipeline: p\ntargets: {a: {gem: x, input: b, trigger: {real_time: ▶5}}}", "GB005"),
        (
            "pipeline: p\ntargets: {a: {gem: x, input: b, trigger: {continuous: ▶1 month}}}",
            "GB005",
        ),
    ],
)
def test_what_is_wrong_is_placed_at_what_must_change(text: str, code: str) -> None:
    clean, (place,) = marked(text)
    loaded = load(clean)

    assert found(loaded) == [(code, *place)]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("pipeline: p\ntransfroms: {}", "Did you mean `transforms`?"),
        ("pipeline: p\nsources: {a: {gem: x, optoins: {}}}", "Did you mean `options`?"),
        (
            "pipeline: p\ntargets: {a: {gem: x, input: b, trigger: {available_nwo: true}}}",
            "Did you mean `available_now`?",
        ),
        ("pipeline: p\nsources: {a: {gem: x, zzz: {}}}", "`description`, `gem`, `mode`, `options`"),
        ("pipeline: Clicks", "lower-case"),
        ("pipeline: p\nsources: {a-b: {gem: x}}", "single underscores"),
        ("pipeline: p\ncheckpoints: 5", "quotes"),
        ("pipeline: p\nsources: [a]", "sources: {id:"),
    ],
)
def test_what_is_wrong_comes_with_a_remedy(text: str, hint: str) -> None:
    (diagnostic,) = load(text).diagnostics

    assert hint in diagnostic.hint


def test_a_trigger_that_is_none_of_the_kinds_names_them() -> None:
    (diagnostic,) = load("pipeline: p\ntargets: {a: {gem: x, input: b, trigger: {}}}").diagnostics

    for kind in ("available_now", "processing_time", "once", "continuous", "real_time"):
        assert f"`{kind}`" in diagnostic.message


def test_everything_that_is_wrong_is_said_at_once() -> None:
    text, places = marked(
        "pipeline: ▶Bad Name\n"
        "version: ▶{}\n"
        "▶colour: blue\n"
        "spark: {a: ▶[]}\n"
        "sources:\n"
        "  ▶no-id: {gem: x}\n"
        "  ok: {gem: x, ▶opts: {}, mode: ▶none}\n"
        "  ▶empty: {}\n"
        "transforms:\n"
        "  ▶ok: {gem: x, input: empty}\n"
        "  ▶lost: {gem: x}\n"
        "targets:\n"
        "  t: {▶inptu: ok, gem: ▶[]}\n"
    )
    loaded = load(text)
    codes = ["GB017", "GB005", "GB004", "GB005", "GB017", "GB004", "GB005", "GB006"]
    codes += ["GB104", "GB005", "GB004", "GB005"]
    expected = [(*place, code) for place, code in zip(places, codes, strict=True)]
    expected.append((13, 3, "GB006"))  # without `inptu` there is no `input`

    assert sorted((d.line, d.column, d.code) for d in loaded.diagnostics) == sorted(expected)
    assert loaded.definition is not None
    assert set(loaded.definition.nodes) == {"no-id", "ok"}
    assert loaded.broken == {"empty", "lost", "t"}


def test_one_id_in_two_sections() -> None:
    text, places = marked(
        "pipeline: p\nsources: {a: {gem: x}}\ntransforms: {▶a: {gem: y, input: a}}\n"
        "targets: {▶a: {gem: z, input: a}}"
    )
    loaded = load(text)

    assert found(loaded) == [("GB104", *place) for place in places]
    assert "first in line 2" in loaded.diagnostics[0].message


def test_an_id_that_is_used_twice_is_said_when_the_first_is_broken() -> None:
    text, places = marked("pipeline: p\nsources: {a: ▶}\ntransforms: {▶a: {gem: y, input: b}}\n")

    assert found(load(text)) == [("GB005", *places[0]), ("GB104", *places[1])]


def test_without_a_name_the_nodes_are_still_read() -> None:
    loaded = load("mode: batch\nversoin: 1\nsources: {a: {gem: x}}\ntargets: {b: {gem: y}}")

    assert sorted(d.code for d in loaded.diagnostics) == ["GB004", "GB006", "GB006"]
    assert loaded.definition is not None
    assert loaded.definition.mode == "batch"


@pytest.mark.parametrize("name", ["version", "checkpoints"])
def test_numbers_keep_the_digits_they_were_written_with_only_where_it_makes_sense(
    name: str,
) -> None:
    loaded = load(f"pipeline: p\nparameters: {{v: 1.10}}\n{name}: ${{v}}")

    (diagnostic,) = loaded.diagnostics
    assert diagnostic.code == "GB005"
    assert diagnostic.hint == "Put it in quotes."


# Files


def test_a_file_that_is_not_there_names_a_close_one(tmp_path: Path) -> None:
    (tmp_path / "clicks.yaml").write_text("pipeline: p")
    loaded = load_file(tmp_path / "clikcs.yaml")

    (diagnostic,) = loaded.diagnostics
    assert (diagnostic.code, diagnostic.file) == ("GB001", str(tmp_path / "clikcs.yaml"))
    assert diagnostic.line == 0
    assert "No such file" in diagnostic.message
    assert diagnostic.hint == "Did you mean `clicks.yaml`?"


@pytest.mark.parametrize("name", ["", "absent/x.yaml", "a\0b.yaml", "x" * 5000, "."])
def test_names_that_can_not_be_read(name: str, tmp_path: Path) -> None:
    loaded = load_file(f"{tmp_path}/{name}")

    assert [d.code for d in loaded.diagnostics] == ["GB001"]
    assert loaded.definition is None


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(text)

    assert found(load_file(file)) == [("GB006", 1, 1)]


def test_a_file_is_named_as_the_user_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "p.yaml").write_text("pipeline: P\nsources: {a: {gem: x}}")
    monkeypatch.chdir(tmp_path)
    loaded = load_file("jobs/p.yaml")

    assert str(loaded.diagnostics[0]).startswith("jobs/p.yaml:1:11: error[GB017]: ")
    assert loaded.definition is not None
    assert loaded.definition.file == "jobs/p.yaml"
    assert loaded.definition.folder == tmp_path / "jobs"
    assert loaded.definition.checkpoints == str(tmp_path / "jobs" / "checkpoints")


def test_what_is_wrong_as_yaml_and_as_a_pipeline_is_said_at_once(tmp_path: Path) -> None:
    file = tmp_path / FILE
    text, places = marked("pipeline: p\nmode: ▶slow\nsources:\n  a: {gem: x, ▶gem: y, mode: ▶!b c}")
    file.write_text(text)

    assert found(load_file(file)) == [
        ("GB003", *places[1]),
        ("GB005", *places[0]),
        ("GB007", *places[2]),
    ]


def test_the_environment_is_the_process_s_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GB_TEST_NAME", "from_outside")
    file = tmp_path / FILE
    file.write_text("pipeline: ${env:GB_TEST_NAME}")
    loaded = load_file(file)

    assert loaded.definition is not None
    assert loaded.definition.name == "from_outside"
