"""What comments and settings silence: which, where, and what is said of comments that do nothing."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gem_bundle import Facts, Finding, Transform
from gem_bundle.check import check_file
from gem_bundle.check.stages.silence import read_silence
from gem_bundle.cli import main
from gem_bundle.pipeline.document import parse
from gem_bundle.pipeline.loader import LoadOptions
from tests.core.checking import ShapeOptions, check, found, marked


class TellTransform(Transform[ShapeOptions]):
    """Says one thing of each kind: of an option, of the node, and an error when asked for."""

    def check(self, *inputs: Facts) -> list[Finding]:
        said = [
            Finding("GB401", "of an option", option="columns", severity="warning"),
            Finding("GB402", "of the node", severity="note"),
        ]
        return [*said, Finding("GB205", "wrong", option="warn")] if self.options.warn else said


def left(text: str) -> list[str]:
    """The codes that are reported, those of comments with their line, column and message."""
    plain, _ = marked(text)
    checked = check(plain, transform_tell=TellTransform)
    return [f"{d.line}:{d.column} {d.message}" if d.code == "GB019" else d.code for d in checked.diagnostics]


TEXT = """\
pipeline: p
sources: {{a: {{gem: topic, options: {{topic: x}}}}}}
transforms:
  {above_node}
  b: {node}
    gem: tell
    input: a
    {above_options}
    options: {options}
      {above_key}
      columns: {key}
        - one {item}
targets: {{t: {{gem: sink, input: b}}}}
"""
PLACES = ("above_node", "node", "above_options", "options", "above_key", "key", "item")


def text(**comments: str) -> str:
    """The pipeline, with comments at some places; a line of its own may be empty."""
    return TEXT.format(**{place: f"# {comments[place]}" if place in comments else "" for place in PLACES})


def test_without_a_comment_all_is_said() -> None:
    assert left(text()) == ["GB402", "GB401"]
    assert left(text(node="gem-bundles: ignore GB401")) == ["GB402", "GB401"]
    assert left(text(node="see gem-bundle: ignore GB401")) == ["GB402", "GB401"]


@pytest.mark.parametrize("place", ["above_node", "node", "above_key", "key", "item"])
def test_where_a_comment_silences(place: str) -> None:
    assert left(text(**{place: "gem-bundle: ignore GB401"})) == ["GB402"]


@pytest.mark.parametrize("place", ["above_options", "options"])
def test_where_it_does_not(place: str) -> None:
    assert left(text(**{place: "gem-bundle: ignore GB401"})) == ["GB402", "GB401"]


def test_the_key_of_a_node_silences_what_is_said_of_the_node() -> None:
    assert left(text(node="gem-bundle: ignore GB402")) == ["GB401"]
    assert left(text(key="gem-bundle: ignore GB402")) == ["GB402", "GB401"]


@pytest.mark.parametrize(
    "comment",
    [
        "gem-bundle: ignore GB401, GB402",
        "gem-bundle: ignore GB401,GB402",
        "gem-bundle:ignore GB402 ,GB401 because both are wanted",
        "gem-bundle:   ignore   GB402, GB401, and more",
        "# gem-bundle: ignore GB401, GB402",
        "keys are few # gem-bundle: ignore GB401, GB402",
    ],
)
def test_several_codes_and_reasons(comment: str) -> None:
    assert left(text(node=comment)) == []


def test_a_comment_above_may_have_others_between() -> None:
    comments = "gem-bundle: ignore GB401\n  # gem-bundle: ignore GB402\n  # The keys are few."

    assert left(text(above_node=comments)) == []


def test_a_comment_above_is_about_the_next_line_only() -> None:
    assert left(text(above_node="gem-bundle: ignore GB401\n")) == ["GB402", "GB401"]


def test_another_node_is_not_meant() -> None:
    twice = text(node="gem-bundle: ignore GB401").replace(
        "targets:", "  c: {gem: tell, input: a, options: {columns: [one]}}\ntargets:"
    )
    assert sorted(left(twice)) == ["GB103", "GB401", "GB402", "GB402"]


def test_a_node_on_one_line() -> None:
    line = "  b: {gem: tell, input: a, options: {columns: [one]}}  # gem-bundle: ignore GB402, GB401\n"
    before, after = text().split("  \n  b:")[0], "targets: {t: {gem: sink, input: b}}\n"

    assert left(f"{before}{line}{after}") == []


def test_errors_stay() -> None:
    above = "gem-bundle: ignore GB205\n      warn: true # gem-bundle: ignore GB205"
    said = left(text(node="gem-bundle: ignore GB205", above_key=above, key="gem-bundle: ignore GB401"))

    told = "GB205 is an error here, and errors can't be silenced"
    assert said == ["GB402", f"5:6 {told}", f"10:7 {told}", "GB205", f"11:18 {told}"]


# Comments that do nothing


def test_a_code_that_is_not_reported_there() -> None:
    assert left(text(node="gem-bundle: ignore GB328, ACME001, GB401")) == [
        "GB402",
        "5:6 there is no ACME001 here to be silenced",
        "5:6 there is no GB328 here to be silenced",
    ]


def test_what_only_another_tool_finds_may_be_meant_for_it() -> None:
    assert left(text(node="gem-bundle: ignore GB510, GB402, GB401")) == []


def test_a_code_that_does_not_exist() -> None:
    (diagnostic,) = check(
        "pipeline: p\n"
        "sources: {a: {gem: topic, options: {topic: x}}}\n"
        "targets: {t: {gem: sink, input: a}}  # gem-bundle: ignore GB3271\n"
    ).diagnostics

    assert (diagnostic.code, diagnostic.severity, diagnostic.line, diagnostic.column) == (
        "GB019",
        "note",
        3,
        38,
    )
    assert diagnostic.message == "there is no code GB3271"
    assert diagnostic.hint.startswith("Did you mean GB3")


@pytest.mark.parametrize(
    "comment", ["gem-bundle: ignore", "gem-bundle: ignore the keys", "gem-bundle: ignroe GB401"]
)
def test_a_comment_that_cannot_be_read(comment: str) -> None:
    assert left(text(node=comment)) == [
        "GB402",
        "5:6 this comment silences nothing: it doesn't say what",
        "GB401",
    ]


def test_nothing_is_said_of_them_while_there_are_errors() -> None:
    broken = text(node="gem-bundle: ignore GB328").replace("gem: sink", "gem: sunk")

    assert left(broken) == ["GB402", "GB401", "GB201"]


def test_other_words_are_left_alone() -> None:
    assert left(text(node="gem-bundle: see the docs")) == ["GB402", "GB401"]


# Comments and values


@pytest.mark.parametrize(
    "value",
    [
        '"# gem-bundle: ignore GB401"',
        "'x # gem-bundle: ignore GB401'",
        "x#gem-bundle:ignore GB401",
        "|\n        # gem-bundle: ignore GB401\n        x # gem-bundle: ignore GB401",
        ">-\n        x # gem-bundle: ignore GB401\n\n        # gem-bundle: ignore GB401",
        '"x\n        # gem-bundle: ignore GB401"',
    ],
)
def test_a_number_sign_in_a_value_begins_no_comment(value: str) -> None:
    assert left(text().replace("columns: \n        - one", f"columns: {value}")) == ["GB402", "GB401"]


@pytest.mark.parametrize(
    "value",
    [
        "'# gem-bundle: x' # gem-bundle: ignore GB401",
        "| # gem-bundle: ignore GB401\n        x",
        "[one, # gem-bundle: ignore GB401\n        two]",
        "ä€𝄞 # gem-bundle: ignore GB401",
    ],
)
def test_a_comment_behind_a_value(value: str) -> None:
    assert left(text().replace("columns: \n        - one", f"columns: {value}")) == ["GB402"]


def test_other_line_ends_count_as_yaml_counts_them() -> None:
    for end in ("\r\n", "\r"):
        assert left(text(key="gem-bundle: ignore GB401").replace("\n", end)) == ["GB402"]


def test_a_second_document_that_is_broken(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    target = "{gem: ▶kafka, input: a, options: {bootstrap_servers: ['b:1'], topic: t}}"
    one, _ = marked(f"pipeline: p\nsources: {{a: {{gem: rate}}}}\ntargets: {{t: {target}}}")
    for comment, codes in (("", ["GB341", "GB002"]), ("# gem-bundle: ignore GB341", ["GB002"])):
        file.write_text(f"{one}  {comment}\n--- ]\n")
        assert [d.code for d in check_file(file).diagnostics] == codes


def test_many_comments_take_no_time() -> None:
    lines = "# gem-bundle: ignore GB999\n" * 50_000 + "a: [" + "1, " * 50_000 + "]\n"
    silence = read_silence(lines, parse("a: 1", "x"), None, frozenset())

    assert len(silence.comments[50_001]) == 50_000
    assert len(silence.useless(complete=True)) == 100


# Settings


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a pipeline that gets one warning and one note."""
    monkeypatch.delenv("GEM_BUNDLE_SETTINGS")
    pipeline = (
        "pipeline: p\n"
        "sources: {a: {gem: rate}}\n"
        "targets:\n"
        "  kept: {gem: file, input: a, options: {format: json, path: out}}\n"
        "  seen: {gem: console, input: a}\n"
        "  sent: {gem: kafka, input: a, options: {bootstrap_servers: ['b:1'], topic: t}}\n"
    )
    (tmp_path / "p.yaml").write_text(pipeline)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(*arguments: str) -> list[str]:
    result = CliRunner().invoke(main, ["check", "--format", "json", "p.yaml", *arguments])
    return [d["code"] for d in json.loads(result.stdout)["diagnostics"]]


def test_settings_silence_warnings_and_notes_everywhere(project: Path) -> None:
    from gem_bundle import Pipeline

    assert shown() == ["GB340", "GB341"]
    (project / "gem-bundle.toml").write_text('check.disable = ["GB340", "GB341"]')

    assert shown() == []
    assert Pipeline.load(project / "p.yaml").check() == []


def test_a_run_says_what_a_check_says(project: Path) -> None:
    from gem_bundle.pipeline.loader import load_file
    from gem_bundle.run.api import prepare
    from gem_bundle.run.options import RunOptions

    def said() -> list[str]:
        _, warnings = prepare(lambda options: load_file(project / "p.yaml", options), RunOptions())
        return [d.code for d in warnings]

    assert said() == ["GB340", "GB341"]
    file = project / "p.yaml"
    file.write_text(file.read_text().replace("input: a}", "input: a}  # gem-bundle: ignore GB340"))
    (project / "gem-bundle.toml").write_text('check.disable = ["GB341"]')
    assert said() == []


def test_errors_cannot_be_disabled(project: Path) -> None:
    (project / "gem-bundle.toml").write_text('check.disable = ["GB201", "GB340", "GB341"]')
    file = project / "p.yaml"
    file.write_text(file.read_text().replace("gem: rate", "gem: rota"))

    assert shown() == ["GB201"]


def test_wrong_settings_are_an_error_of_the_check(project: Path) -> None:
    (project / "gem-bundle.toml").write_text("check.spark_version = 'new'\n")

    assert "GB018" in shown()


def test_notes_about_comments_can_be_disabled_too(project: Path) -> None:
    (project / "gem-bundle.toml").write_text('check.disable = ["GB340", "GB341", "GB019"]')
    file = project / "p.yaml"
    file.write_text(file.read_text() + "# gem-bundle: ignore GB328\n")

    assert shown() == []


def test_a_pipeline_written_in_python_has_no_comments() -> None:
    from gem_bundle import Pipeline

    pipeline = Pipeline("p").source("a", "rate").target("t", "console", "a")

    assert pipeline.check() == []


def test_load_options_change_nothing() -> None:
    silenced = check(
        text(node="gem-bundle: ignore GB401"), LoadOptions(environment={}), transform_tell=TellTransform
    )

    assert [code for code, _, _ in found(silenced)] == ["GB402"]
