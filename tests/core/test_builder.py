"""Pipelines written in Python: the same definitions and the same checks as a file's."""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle import GemError, Pipeline, PipelineError
from gem_bundle.check.checker import check_definition
from gem_bundle.pipeline.loader import LoadOptions, load_file
from tests.core.checking import registry
from tests.core.cli.left_by_runs import left_by_a_run

if TYPE_CHECKING:
    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.pipeline.model import Definition

YAML = """\
pipeline: clicks
version: "1.4"
description: Clicks.
parameters:
  topic: clicks
  limit: {type: integer, description: Rows.}
profiles:
  prod: {limit: 9}
spark: {spark.sql.shuffle.partitions: 8, spark.x: true}
checkpoints: state
sources:
  clicks:
    gem: topic
    options: {topic: "${topic}", maxOffsetsPerTrigger: "${limit}", columns: [a, b]}
  pages: {gem: pages, mode: batch}
transforms:
  parsed: {gem: shape, input: clicks, options: {columns: {x: a + 1}}}
  joined: {gem: pair, inputs: [parsed, pages]}
  named: {gem: pair, inputs: {left: joined, right: split.good}}
  split: {gem: split, input: parsed}
targets:
  table: {gem: sink, input: named, output_mode: update, trigger: {processing_time: 1 minute}}
  errors: {gem: log, input: split.bad, trigger: {available_now: true}}
"""


def in_python(folder: Path) -> Pipeline:
    return (
        Pipeline(
            "clicks",
            version="1.4",
            description="Clicks.",
            parameters={"topic": "clicks", "limit": {"type": "integer", "description": "Rows."}},
            profiles={"prod": {"limit": 9}},
            spark={"spark.sql.shuffle.partitions": 8, "spark.x": True},
            checkpoints=Path("state"),
            folder=folder,
        )
        .source(
            "clicks",
            "topic",
            {"topic": "${topic}", "maxOffsetsPerTrigger": "${limit}", "columns": ("a", "b")},
        )
        .source("pages", "pages", mode="batch")
        .transform("parsed", "shape", "clicks", {"columns": {"x": "a + 1"}})
        .transform("joined", "pair", ["parsed", "pages"])
        .transform("named", "pair", {"left": "joined", "right": "split.good"})
        .transform("split", "split", "parsed")
        .target("table", "sink", "named", output_mode="update", trigger={"processing_time": "1 minute"})
        .target("errors", "log", "split.bad", trigger={"available_now": True})
    )


def definition_of(pipeline: Pipeline, options: LoadOptions) -> Definition:
    loaded = pipeline._load(options)
    assert loaded.diagnostics == []
    assert loaded.definition is not None
    return loaded.definition


def said(diagnostics: list[Diagnostic]) -> list[tuple[object, ...]]:
    """What is said, whatever the place."""
    return sorted((d.code, d.severity, d.message, str(d.node), d.path, d.hint) for d in diagnostics)


def test_the_same_pipeline_in_yaml_and_in_python(tmp_path: Path) -> None:
    file = tmp_path / "clicks.yaml"
    file.write_text(YAML)
    options = LoadOptions(profile="prod", environment={})
    loaded = load_file(file, options)

    assert loaded.diagnostics == []
    for pipeline in (in_python(tmp_path), Pipeline.load(file)):
        assert definition_of(pipeline, options) == loaded.definition
        assert pipeline.check(profile="prod", registry=registry()) == []
    assert check_definition(loaded, registry()).ok


# Each line breaks the same rule in the file and in Python.
BROKEN_YAML = """\
pipeline: Clicks
spark: {a: [1]}
checkpoints: ${nowhere}
sources:
  a-b: {gem: topic, options: {topic: t}}
  b: {gem: topc}
  c: {gem: topic, options: {limit: x, brokers: [y], optn: 1, include: a, exclude: b}}
  d: {gem: ticks, mode: batch}
  e: {gem: topic, options: {topic: "${topci}", path: "${env:GB_NOT_THERE}"}}
transforms:
  f: {gem: pair, input: d}
  g: {gem: shape, inputs: [h]}
  h: {gem: shape, input: g, options: {window: {duration: 5}}}
targets:
  t: {gem: log, input: f, output_mode: complete}
  u: {gem: report, input: clicks, trigger: {processing_time: 5m}}
  d: {gem: sink, input: d}
"""


def broken_in_python() -> Pipeline:
    trigger: Any = {"processing_time": "5m"}
    spark: Any = {"a": [1]}
    return (
        Pipeline("Clicks", spark=spark, checkpoints="${nowhere}")
        .source("a-b", "topic", {"topic": "t"})
        .source("b", "topc")
        .source(
            "c",
            "topic",
            {"limit": "x", "brokers": ["y"], "optn": 1, "include": "a", "exclude": "b"},
        )
        .source("d", "ticks", mode="batch")
        .source("e", "topic", {"topic": "${topci}", "path": "${env:GB_NOT_THERE}"})
        .transform("f", "pair", "d")
        .transform("g", "shape", ["h"])
        .transform("h", "shape", "g", {"window": {"duration": 5}})
        .target("t", "log", "f", output_mode="complete")
        .target("u", "report", "clicks", trigger=trigger)
        .target("d", "sink", "d")
    )


def test_the_same_mistakes_in_yaml_and_in_python(tmp_path: Path) -> None:
    file = tmp_path / "clicks.yaml"
    file.write_text(BROKEN_YAML)
    in_file = check_definition(load_file(file, LoadOptions(environment={})), registry()).diagnostics
    in_code = broken_in_python().check(registry=registry())

    def without_lines(diagnostics: list[Diagnostic]) -> list[tuple[object, ...]]:
        return [(code, *rest) for code, *rest in said(diagnostics) if code != "GB104"]

    assert len(in_file) > 15
    assert without_lines(in_code) == without_lines(in_file)
    assert [d.code for d in in_code].count("GB104") == 1
    assert said(Pipeline.load(file).check(registry=registry())) == said(in_file)


def test_diagnostics_point_at_the_call() -> None:
    first = inspect.currentframe()
    assert first is not None
    line = first.f_lineno
    pipeline = (
        Pipeline("Clicks")
        .source("a", "topic", {"topic": "t", "optn": 1})
        .target(
            "t",
            "sink",
            "b",
        )
    )
    pipeline.source("c", "topc").source("a", "topic")
    found = {d.code: d for d in pipeline.check(registry=registry())}

    assert {code: (d.line - line, d.column) for code, d in found.items() if code != "GB103"} == {
        "GB017": (2, 9),
        "GB204": (3, 10),
        "GB101": (4, 10),
        "GB201": (10, 5),
        "GB104": (10, 5),
    }
    assert {d.file for d in found.values()} == {__file__}
    assert str(found["GB204"]).startswith(f"{__file__}:{line + 3}:10: error[GB204]: `a`: ")


def test_an_id_twice_in_one_section() -> None:
    pipeline = Pipeline("p").source("a", "ticks").source("a", "pages").target("t", "sink", "a")
    (diagnostic,) = pipeline.check(registry=registry())

    assert diagnostic.code == "GB104"
    assert "first in line" in diagnostic.message


def test_paths_are_relative_to_the_file_of_the_call() -> None:
    definition = definition_of(Pipeline("p"), LoadOptions())

    assert definition.folder == Path(__file__).parent
    assert definition.file == ""
    assert definition.checkpoints == str(Path(__file__).parent / "checkpoints")
    elsewhere = definition_of(Pipeline("p", folder="x"), LoadOptions())
    assert elsewhere.folder == Path("x").absolute()


def test_options_are_copied_when_they_are_given() -> None:
    options: dict[str, Any] = {"topic": "t", "columns": ["a"]}
    pipeline = Pipeline("p").source("a", "topic", options).target("t", "sink", "a")
    options["columns"].append("b")
    options["wrong"] = 1

    assert pipeline.check(registry=registry()) == []


def test_values_that_are_no_data() -> None:
    endless: list[Any] = []
    endless.append(endless)
    pipeline = (
        Pipeline("p")
        .source("a", "topic", {"topic": object(), "path": Path("x"), "columns": endless})
        .target("t", "sink", "a")
    )
    found = pipeline.check(registry=registry())

    assert {d.code for d in found} == {"GB008", "GB205"}


def test_a_loaded_pipeline_can_be_extended(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("pipeline: p\nsources:\n  a: {gem: ticks, optns: {}}\n")
    pipeline = Pipeline.load(file).transform("b", "shpe", "a").target("t", "sink", "b")
    found = {d.code: d for d in pipeline.check(registry=registry())}

    assert found.keys() == {"GB004", "GB201"}
    assert (found["GB004"].file, found["GB004"].line) == (str(file), 3)
    assert found["GB201"].file == __file__


@pytest.mark.parametrize(
    ("text", "code"),
    [("", "GB006"), ("[1]", "GB005"), ("a: [", "GB002"), ("pipeline: p\nsources: 5", "GB005")],
)
def test_a_file_that_is_no_pipeline(tmp_path: Path, text: str, code: str) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(text)
    pipeline = Pipeline.load(file)

    assert code in [d.code for d in pipeline.check(registry=registry())]
    pipeline.source("a", "ticks").target("t", "sink", "a").check(registry=registry())
    assert [d.code for d in Pipeline.load(tmp_path / "absent.yaml").check()] == ["GB001"]


def test_parameters_are_given_to_a_check() -> None:
    pipeline = (
        Pipeline("p", parameters={"topic": {"type": "string"}})
        .source("a", "topic", {"topic": "${topic}"})
        .target("t", "sink", "a")
    )

    assert [d.code for d in pipeline.check(registry=registry())] == ["GB011"]
    assert pipeline.check(parameters={"topic": "x"}, registry=registry()) == []


def test_the_example_in_the_docstring(monkeypatch: pytest.MonkeyPatch) -> None:
    example = inspect.cleandoc(Pipeline.__doc__ or "").split("::\n", 1)[1].split("\n\nNames,")[0]
    runs: list[Pipeline] = []

    def run(self: Pipeline) -> None:
        runs.append(self)

    monkeypatch.setattr(Pipeline, "run", run)
    exec(textwrap.dedent(example), {"__file__": __file__})

    (pipeline,) = runs
    assert pipeline.check() == []


def test_a_wrong_pipeline_is_not_run() -> None:
    with pytest.raises(PipelineError) as caught:
        Pipeline("p").source("a", "ticks").run()

    assert "GB107" in [d.code for d in caught.value.diagnostics]
    assert "error[GB107]" in str(caught.value)


COUNTED = """\
pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string"}}
transforms:
  counts: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {n: count(*)}}}
targets:
  out: {gem: console, input: counts, output_mode: update}
"""


def test_what_the_plan_holds_goes_on_when_it_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: object, **__: object) -> None:
        raise GemError("GB512", "Spark was to start")

    monkeypatch.setattr("gem_bundle.run.api.open_for", started)
    file = tmp_path / "shop.yaml"
    file.write_text(COUNTED)
    left_by_a_run(file)
    file.write_text(COUNTED.replace("count(*)", "count(page)"))
    for accept in ((), ["GB423:out"], ["GB421"]):
        with pytest.raises(PipelineError, match="nevertheless: `--accept GB423:counts`"):
            Pipeline.load(file).run(accept=accept)
    for accept in (["GB423:counts"], iter([" gb423 "]), ["GB421", "GB423:counts"]):
        with pytest.raises(GemError, match="Spark was to start"):
            Pipeline.load(file).run(accept=accept)


@pytest.mark.parametrize(
    ("accept", "said"),
    [
        (["GB423", "GB999:a"], "`GB999:a` is not a code of a change, such as GB423, or GB423:some_node"),
        ("counts:GB423", "`counts:GB423` is not a code of a change"),
        (["GB444"], "`GB444` never stops a run, so there is nothing to accept"),
        ([("GB423", "a")], "`('GB423', 'a')` is not a code of a change"),
    ],
)
def test_what_can_not_be_accepted_is_said_at_the_call(accept: Any, said: str) -> None:
    with pytest.raises(PipelineError) as caught:
        Pipeline("p").run(accept=accept)
    (wrong,) = caught.value.diagnostics
    assert (wrong.code, wrong.severity) == ("GB408", "error")
    assert wrong.message.startswith(f"`accept` takes nothing: {said}")
    assert wrong.file == __file__


@pytest.mark.spark
def test_the_dataframe_of_a_node(spark: Any) -> None:
    pipeline = (
        Pipeline("p", mode="batch", parameters={"least": 2})
        .source("numbers", "rows", {"rows": [{"n": 1}, {"n": 2}, {"n": 3}]})
        .transform("large", "filter", "numbers", {"condition": "n >= ${least}"})
        .target("out", "noop", "large")
    )
    rows = pipeline.dataframe("large", spark, parameters={"least": 3})

    assert [row.n for row in rows.collect()] == [3]
    with pytest.raises(PipelineError, match="GB108"):
        pipeline.dataframe("lagre", spark)


@pytest.mark.spark
def test_a_run_from_python(spark: Any, tmp_path: Path) -> None:
    pipeline = (
        Pipeline("from_python", mode="batch", folder=tmp_path)
        .source("numbers", "rows", {"rows": [{"n": 1}, {"n": 2}]})
        .target("out", "file", "numbers", {"format": "json", "path": "out"})
    )
    report = pipeline.run(report=tmp_path / "report.json")

    assert report.ok
    assert sorted(row.n for row in spark.read.json(str(tmp_path / "out")).collect()) == [1, 2]
    assert (tmp_path / "report.json").is_file()
