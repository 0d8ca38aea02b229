"""`gem-bundle plan`: text, JSON and Markdown, and the exit status."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from gem_bundle.changes.begun import journal_of
from gem_bundle.changes.history import keep_versions
from gem_bundle.changes.planning import hold_to_plan
from gem_bundle.errors import PipelineError
from gem_bundle.pipeline.loader import LoadOptions
from tests.checked import plan_of
from tests.core.cli.left_by_runs import killed_while_it_began_anew, left_by_a_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    from gem_bundle.pipeline.plan import Plan
    from tests.core.cli.conftest import Installer

    Cli = Callable[..., Result]

TEXT = """pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int"}}
transforms:
  some: {gem: filter, input: clicks, options: {condition: n > 0}}
  counts: {gem: aggregate, input: some, options: {group_by: [page], aggregates: {n: count(*)}}}
targets:
  all: {gem: file, input: some, options: {format: json, path: all}}
  out: {gem: console, input: counts, output_mode: update}
"""


REFUSED = "Spark won't start, or fails in the first micro-batch."


def written(folder: Path, text: str, name: str = "shop.yaml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_nothing_has_changed(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    left_by_a_run(file)
    result = cli("plan", str(file))
    assert result.exit_code == 0, result.output
    assert "target all: same" in result.stdout
    assert result.stdout.splitlines()[-1] == f"{file}: 2 same. Nothing has changed."


def test_every_change_is_told_at_its_line(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    left_by_a_run(file)
    written(tmp_path, TEXT.replace("n > 0", "n > 1"))
    result = cli("plan", str(file))
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "target all: from_now_on"
    assert lines[1].startswith(f"  {file}:5:")
    assert "from_now_on[GB423]: transform `some`: `condition` was `n > 0` and is `n > 1`" in lines[1]
    assert any("mixed[GB423]" in line and "the state of `counts`" in line for line in lines)
    assert lines[-1].startswith(f"{file}: 1 mixed, 1 from_now_on. ")
    assert cli("plan", str(file), "--target", "all").exit_code == 0
    colours = cli("plan", str(file), color=True).stdout
    assert "\x1b[33m\x1b[1mfrom_now_on[GB423]:\x1b[0m" in colours
    assert "\x1b[31m\x1b[1mmixed\x1b[0m\n" in colours
    assert "\x1b" not in result.stdout


def test_as_json(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    left_by_a_run(file)
    written(tmp_path, TEXT.replace("n > 0", "n > 1"))
    result = cli("plan", str(file), "--format", "json")
    assert result.exit_code == 1
    content = json.loads(result.stdout)
    assert content["ok"] is False
    assert {found["severity"] for found in content["diagnostics"]} <= {"warning", "note"}
    assert content["targets"]["out"]["verdict"] == "mixed"
    (change,) = content["targets"]["all"]["changes"]
    assert {key: change[key] for key in ("verdict", "node", "path", "line", "code", "before", "after")} == {
        "verdict": "from_now_on",
        "node": "some",
        "path": ["transforms", "some", "options", "condition"],
        "line": 5,
        "code": "GB423",
        "before": "n > 0",
        "after": "n > 1",
    }
    assert set(change) == {
        *("verdict", "node", "path", "line", "code", "message", "hint", "before", "after", "accepted")
    }


def test_as_markdown_against_another_version(cli: Cli, tmp_path: Path) -> None:
    before = written(tmp_path, TEXT, "before.yaml")
    file = written(tmp_path, TEXT.replace("n > 0", "n > 1"))
    result = cli("plan", str(file), "--against", str(before), "--markdown")
    assert result.exit_code == 1
    assert result.stdout.startswith(f"### ❌ `{file}`: mixed\n")
    assert "| from_now_on | 5 | GB423 | transform `some`: " in result.stdout


def test_a_first_run_says_from_where_it_reads(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    result = cli("plan", str(file))
    assert result.exit_code == 0
    assert "new[GB444]: target `all` has no checkpoint yet: `clicks` from its beginning" in result.stdout


def test_a_target_that_is_no_more(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    left_by_a_run(file)
    written(tmp_path, TEXT.replace("  out: {gem: console, input: counts, output_mode: update}\n", ""))
    result = cli("plan", str(file))
    assert result.exit_code == 0
    gone = f"  {file}:7:1: gone[GB445]: target `out` is no more; its checkpoint stays"
    assert gone in result.stdout.splitlines()
    # Asked for by its name it is told alone.
    result = cli("plan", str(file), "--target", "out")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[:-1] == ["target out: gone", gone]
    found = json.loads(cli("plan", str(file), "--target", "out", "--format", "json").stdout)["targets"]
    assert found["out"]["changes"][0]["path"] == ["targets"]
    before = written(tmp_path, TEXT, "before.yaml")
    result = cli("plan", str(file), "--target", "out", "--against", str(before))
    assert result.stdout.splitlines()[:-1] == ["target out: gone", gone]
    for other in ((), ("--against", str(before))):
        result = cli("plan", str(file), "--target", "out", "--target", "uot", *other)
        assert (result.exit_code, "the pipeline has no target `uot`" in result.stderr) == (1, True)
        assert "has no target `out`" not in result.stderr
        assert "gone" not in result.stdout
    # Under another id it is not gone.
    written(tmp_path, TEXT.replace("out: {", "shown: {was: out, "))
    for other in ((), ("--against", str(before))):
        assert "has no target `out`" in cli("plan", str(file), "--target", "out", *other).stderr


def test_a_target_that_is_wrong_is_not_said_to_be_missing(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT.replace("out: {gem: console, input:", "out: {gem: console, inputt:"))
    result = cli("plan", str(file), "--target", "out", "--target", "uot")
    assert result.exit_code == 1
    assert "error[GB006]: `out`: `input` is missing" in result.stderr
    assert "has no target `out`" not in result.stderr
    assert "has no target `uot`" in result.stderr


def test_an_option_that_a_gem_did_not_have_yet_was_its_default(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    left_by_a_run(file)
    record = tmp_path / "checkpoints/shop/.all.record.json"
    content = json.loads(record.read_text(encoding="utf-8"))
    (target,) = (n for n in content["versions"][0]["nodes"] if n["kind"] == "target")
    assert target["options"].pop("partition_by") == []
    record.write_text(json.dumps(content), encoding="utf-8")
    assert "target all: same\n" in cli("plan", str(file), "--target", "all").stdout
    written(tmp_path, TEXT.replace("path: all", "path: all, partition_by: [page]"))
    assert '`partition_by` was `[]` and is `["page"]`' in cli("plan", str(file), "--target", "all").stdout


def test_quietly_only_what_stops_a_run_is_told(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    left_by_a_run(file)
    for more in ((), ("--markdown",)):
        assert cli("plan", str(file), "--quiet", *more).output == ""
    written(tmp_path, TEXT.replace("n > 0", "n > 1"))
    lines = cli("plan", str(file), "--quiet").stdout.splitlines()
    assert [line for line in lines if line.startswith("target ")] == ["target out: mixed"]
    lines = cli("plan", str(file), "--quiet", "--markdown").stdout.splitlines()
    assert [line for line in lines if line.startswith(("#", "**"))] == [
        f"### ❌ `{file}`: mixed",
        "**out**: mixed",
    ]
    # For programs all is told, as by `check`.
    found = json.loads(cli("plan", str(file), "--quiet", "--format", "json").stdout)
    assert found["targets"].keys() == {"all", "out"}


BOTH = TEXT.replace(
    "transforms:",
    '  views: {gem: file, options: {format: json, path: views, schema: "page string, n int"}}\ntransforms:\n'
    "  both: {gem: union, inputs: [clicks, views]}",
).replace("input: clicks,", "input: both,")


@pytest.mark.parametrize(
    ("before", "after", "verdict", "status"),
    [
        (BOTH, TEXT, "skipped", 1),
        (
            TEXT,
            TEXT.replace("  clicks: {", "  visits: {").replace("input: clicks", "input: visits"),
            "again",
            1,
        ),
        (TEXT, TEXT.replace("n > 0", "n > 1"), "mixed", 1),
        (TEXT, TEXT.replace("path: data", "path: data2"), "refused", 1),
        (TEXT, TEXT.replace("  out: {", "  more: {"), "gone", 0),
        (TEXT, f"{TEXT}  more: {{gem: noop, input: some}}\n", "new", 0),
        (TEXT, BOTH, "continues", 0),
        (TEXT, TEXT, "same", 0),
    ],
)
def test_the_exit_status_is_one_from_skipped_on(
    cli: Cli, tmp_path: Path, before: str, after: str, verdict: str, status: int
) -> None:
    former = written(tmp_path, before, "before.yaml")
    result = cli("plan", str(written(tmp_path, after)), "--against", str(former))
    assert result.exit_code == status, result.output
    assert f": {verdict}\n" in result.stdout
    assert (
        f"1 {verdict}" in result.stdout.splitlines()[-1] or f"2 {verdict}" in result.stdout.splitlines()[-1]
    )


def test_nothing_is_written_and_no_spark_is_started(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("pyspark.")]:
        monkeypatch.delitem(sys.modules, name)  # another test's, whose session would be asked
    monkeypatch.setitem(sys.modules, "pyspark", None)
    file = written(tmp_path, TEXT)
    left_by_a_run(file)
    former = written(tmp_path, TEXT, "before.yaml")
    written(tmp_path, TEXT.replace("n > 0", "n > 1"))

    def all_files() -> dict[Path, tuple[int, int, int]]:
        states = {path: path.stat() for path in (tmp_path, *tmp_path.rglob("*"))}
        return {path: (one.st_ino, one.st_size, one.st_mtime_ns) for path, one in states.items()}

    before = all_files()
    for more in ((), ("--markdown",), ("--format", "json"), ("--against", str(former))):
        assert cli("plan", str(file), *more).exit_code == 1
    assert all_files() == before


SILENT = '''
from gem_bundle import Field, Options, Target, Transform, hookimpl


class SilentOptions(Options):
    level: int = Field(1, description="How much.")


class Passing(Transform[SilentOptions]):
    """Let rows through."""

    def infer(self, *inputs):
        return inputs[0]


class Keeping(Transform[SilentOptions]):
    """Keep what nobody knows."""


class Failing(Passing):
    """Fail."""

    def change(self, option, before):
        raise KeyError("lost")


class Sending(Target[SilentOptions]):
    """Send rows."""


class Sinking(Sending):
    """Write rows with a sink."""

    def write_stream(self, df, context):
        return df.writeStream.format("sink")


class Breaking(Sending):
    """Fail."""

    def takes_over(self):
        raise KeyError("lost")


@hookimpl
def gem_bundle_register_gems(register):
    for gem in ("Passing", "Keeping", "Failing"):
        register("transform", gem.lower(), f"silent_gems:{gem}")
    for gem in ("Sending", "Sinking", "Breaking"):
        register("target", gem.lower(), f"silent_gems:{gem}")
'''
SAID = TEXT.replace("  all: {gem: file, input: some", "  all: {gem: file, input: odd").replace(
    "targets:", "  odd: {gem: GEM, input: some, options: {level: 1}}\ntargets:"
)


@pytest.mark.parametrize(
    ("gem", "verdict", "why"),
    [
        ("passing", "from_now_on", "; the gem `passing` doesn't say what that means"),
        ("keeping", "mixed", "; the gem `keeping` doesn't say what that means"),
        ("failing", "from_now_on", "; the gem fails in `change`: KeyError: 'lost'"),
        ("sending", "from_now_on", "; the gem `sending` doesn't say what that means"),
    ],
)
def test_of_gems_that_say_nothing_it_is_the_rule_and_no_knowledge(
    cli: Cli, install: Installer, tmp_path: Path, gem: str, verdict: str, why: str
) -> None:
    install("silent", SILENT)
    text = SAID.replace("GEM", gem)
    if gem == "sending":
        text = TEXT.replace(
            "all: {gem: file, input: some, options: {format: json, path: all}",
            "all: {gem: sending, input: some, options: {level: 1}",
        )
    former = written(tmp_path, text, "before.yaml")
    file = written(tmp_path, text.replace("level: 1", "level: 2"))
    result = cli("plan", str(file), "--against", str(former), "--target", "all", "--format", "json")
    found = json.loads(result.stdout)["targets"]["all"]
    assert found["verdict"] == verdict
    (change,) = found["changes"]
    assert f"`level` was `1` and is `2`{why}" in change["message"]
    assert "this is the rule and not knowledge" in change["message"]


@pytest.mark.parametrize(
    ("gem", "verdict", "why"),
    [
        ("sending", "from_now_on", "rows from now on go there"),
        ("sinking", "mixed", "its sink may keep a log of micro-batches"),
        ("breaking", "from_now_on", "the gem fails in `takes_over`: KeyError: 'lost'"),
    ],
)
def test_of_a_checkpoint_of_another_gem_the_worse_is_said_where_nothing_is_known(
    cli: Cli, install: Installer, tmp_path: Path, gem: str, verdict: str, why: str
) -> None:
    install("silent", SILENT)
    former = written(tmp_path, TEXT, "before.yaml")
    text = TEXT.replace(
        "all: {gem: file, input: some, options: {format: json, path: all}",
        f"all: {{gem: {gem}, input: some, options: {{level: 1}}",
    )
    file = written(tmp_path, text)
    result = cli("plan", str(file), "--against", str(former), "--target", "all", "--format", "json")
    (change,) = json.loads(result.stdout)["targets"]["all"]["changes"]
    assert (change["verdict"], change["code"]) == (verdict, "GB430")
    assert f"target `all` was a `file` and is a `{gem}`: {why}" in change["message"]
    assert f"the gem `{gem}` doesn't say what that means: this is the rule" in change["message"]
    assert ("another id" in change["hint"]) is (verdict == "mixed")


def test_where_the_code_of_a_function_is_not_found_a_target_that_is_the_same_has_a_note(
    cli: Cli, tmp_path: Path
) -> None:
    text = TEXT.replace(
        "all: {gem: file, input: some, options: {format: json, path: all}",
        'all: {gem: foreach, input: some, options: {function: "math:sqrt"}',
    )
    file = written(tmp_path, text)
    left_by_a_run(file)
    found = json.loads(cli("plan", str(file), "--target", "all", "--format", "json").stdout)["targets"]["all"]
    assert (found["verdict"], found["changes"]) == ("same", [])
    assert found["notes"] == [
        "whether the code of `math:sqrt`, which `all` calls, has changed can't be known: there is no source of "
        "it that can be read"
    ]


def test_a_damaged_record_is_told(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    left_by_a_run(file)
    (tmp_path / "checkpoints" / "shop" / ".out.record.json").write_text("{", encoding="utf-8")
    result = cli("plan", str(file))
    assert result.exit_code == 1
    assert "GB404" in result.stderr


UNSEEN = TEXT.replace("sources:", "checkpoints: wasbs://me:pa55word@account/c\nsources:", 1)


def test_where_a_checkpoint_can_not_be_seen_nothing_is_said_to_be_right(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, UNSEEN)
    result = cli("plan", str(file))
    assert result.exit_code == 1
    assert (
        f"{file}:9:3: error[GB406]: the checkpoint of target `all` can't be seen from here" in result.stderr
    )
    assert "install the package that teaches fsspec its scheme" in result.stderr
    assert "pa55word" not in result.output
    assert result.stdout == f"{file}: 2 not known. The errors say why.\n"

    found = json.loads(cli("plan", str(file), "--target", "out", "--format", "json").stdout)
    assert (found["ok"], found["targets"]) == (False, {})
    assert [(d["code"], d["node"], d["line"]) for d in found["diagnostics"] if d["severity"] == "error"] == [
        ("GB406", "out", 10)
    ]

    result = cli("plan", str(file), "--markdown")
    assert result.exit_code == 1
    assert result.stdout.startswith(f"### ❌ `{file}`: not known\n\nThe errors say why.\n")
    assert "| error | 9 | GB406 | the checkpoint of target `all` can't be seen from here" in result.stdout
    assert "install the package that teaches fsspec its scheme" in result.stdout


def test_what_is_known_of_other_targets_is_told_too(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    left_by_a_run(file)
    (tmp_path / "checkpoints/shop/out/metadata").write_text("{", encoding="utf-8")
    result = cli("plan", str(file))
    assert result.exit_code == 1
    assert "error[GB402]" in result.stderr
    assert result.stdout.splitlines() == [
        "target all: same",
        f"{file}: 1 same, 1 not known. The errors say why.",
    ]
    lines = cli("plan", str(file), "--markdown").stdout.splitlines()
    assert lines[0] == f"### ❌ `{file}`: 1 same, 1 not known"
    assert any(
        line.startswith("| error | 9 | GB402 | the checkpoint of target `out` is damaged") for line in lines
    )
    written(tmp_path, TEXT.replace("path: data,", "path: data2,"))
    result = cli("plan", str(file))
    assert result.stdout.splitlines()[-1] == f"{file}: 1 refused, 1 not known. The errors say why. {REFUSED}"
    lines = cli("plan", str(file), "--markdown").stdout.splitlines()
    assert lines[0] == f"### ❌ `{file}`: 1 refused, 1 not known"


def test_what_a_run_has_accepted_that_had_nothing_to_do_is_not_asked_again(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    most = TEXT.replace("count(*)", "max(n)")
    left_by_a_run(written(tmp_path, most))

    def edit(text: str) -> Plan:
        return plan_of(str(written(tmp_path, text)), LoadOptions(environment={}))

    edited = most.replace("max(n)", "min(n)")
    plan = edit(edited.replace("n > 0", "n > 1"))
    with pytest.raises(PipelineError):
        hold_to_plan(plan, ["out"])
    accepted = hold_to_plan(plan, ["out"], [("GB423", "")])
    # What continues, or is from now on, is nobody's to accept.
    assert {(one.code, one.node) for one in accepted["out"]} == {("GB423", "some"), ("GB423", "counts")}
    assert keep_versions(plan, ["out"], accepted) == []

    assert hold_to_plan(plan, ["out"]).keys() == {"out"}
    result = cli("plan", str(file), "--target", "out")
    assert result.exit_code == 0
    assert result.stdout.count("mixed[GB423] (accepted): ") == 2
    lines = cli("plan", str(file), "--target", "out", "--markdown").stdout.splitlines()
    assert lines[0] == f"### ⚠️ `{file}`: mixed (accepted)"
    assert sum(line.startswith("| mixed (accepted) | ") for line in lines) == 2
    found = json.loads(cli("plan", str(file), "--target", "out", "--format", "json").stdout)
    assert found["ok"] is True
    assert [change["accepted"] for change in found["targets"]["out"]["changes"]] == [True, True]
    # That was of this version, and of no other one.
    with pytest.raises(PipelineError):
        hold_to_plan(edit(edited.replace("n > 0", "n > 2")), ["out"])


def called(source: str, transform: str, target: str) -> str:
    """The pipeline with other ids, each with the former ones that it says."""
    text = TEXT
    kinds = {"input: clicks": source, "input: counts": transform}
    for former, said in (("clicks", source), ("counts", transform), ("out", target)):
        text = text.replace(f"  {former}: {{", f"  {said}, ")
    for read, said in kinds.items():
        text = text.replace(read, f"input: {said.partition(':')[0]}")
    return text


def test_what_was_renamed_twice_has_its_former_ids_the_newest_first(cli: Cli, tmp_path: Path) -> None:
    once = called("visits: {was: clicks", "sums: {was: counts", "shown: {was: out")
    twice = called("views: {was: [visits, clicks]", "many: {was: [sums, counts]", "seen: {was: [shown, out]")
    turned = called("views: {was: [clicks, visits]", "many: {was: [sums, counts]", "seen: {was: [shown, out]")
    file = written(tmp_path, TEXT)
    left_by_a_run(file)
    for text in (once, twice):
        written(tmp_path, text)
        result = cli("plan", str(file))
        assert result.exit_code == 0, result.output
        assert result.stdout.splitlines()[-1] == f"{file}: 2 continues. All rows are right."
    assert "target `out` is called `seen` now, and nothing is lost" in result.stdout
    former = written(tmp_path, once, "once.yaml")
    assert "\ntarget seen: continues\n" in cli("plan", str(file), "--against", str(former)).stdout
    # The checkpoint knows a node by the id that it had first, which is the last one.
    written(tmp_path, turned)
    assert "target seen: again" in cli("plan", str(file)).stdout


@pytest.mark.parametrize("renamed", [0, 1, 2])
def test_new_state_that_a_killed_run_has_begun_is_what_the_next_run_goes_on_with(
    cli: Cli, tmp_path: Path, renamed: int
) -> None:
    file = written(tmp_path, TEXT)
    left_by_a_run(file)
    written(tmp_path, TEXT.replace("count(*)", "sum(n)"))
    assert cli("plan", str(file), "--target", "out").exit_code == 1
    out = tmp_path / "checkpoints" / "shop" / "out"
    killed_while_it_began_anew(file, "out", renamed)
    result = cli("plan", str(file), "--target", "out")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "target out: same")
    assert journal_of(out).exists()
    journal_of(out).write_text("{", encoding="utf-8")
    result = cli("plan", str(file), "--target", "out")
    assert result.exit_code == 1
    assert (
        f"shop.yaml:9:3: error[GB407]: target `out` can't begin with new state where it ended: {journal_of(out)}"
        in (result.stderr)
    )


def test_notes_are_in_each_format(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    left_by_a_run(file)
    for name in ("all", "out"):
        (tmp_path / f"checkpoints/shop/.{name}.record.json").unlink()
    known = "what keys are made of, can't be known"
    assert known in cli("plan", str(file)).stdout
    assert known in cli("plan", str(file), "--markdown").stdout
    found = json.loads(cli("plan", str(file), "--format", "json").stdout)["targets"]["all"]
    assert found["verdict"] == "continues"
    assert known in found["notes"][0]


def test_a_record_that_can_not_be_read_is_not_none(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    left_by_a_run(file)
    record = tmp_path / "checkpoints/shop/.out.record.json"
    record.unlink()
    record.mkdir()
    result = cli("plan", str(file), "--target", "out")
    assert result.exit_code == 1
    assert "error[GB404]: the record of the checkpoint of target `out` can't be read" in result.stderr
    assert "continues" not in result.stdout


def test_a_pipeline_with_errors_is_not_right_in_markdown(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT.replace("gem: filter", "gem: filtre"))
    result = cli("plan", str(file), "--markdown")
    assert result.exit_code == 1
    assert result.stdout.startswith(f"### ❌ `{file}`: not known\n")
    assert "| error | 5 | GB201 |" in result.stdout


def test_wrong_use(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT)
    assert cli("plan", str(file), "--markdown", "--format", "json").exit_code == 2
    assert cli("plan").exit_code == 2
    result = cli("plan", str(file), "--target", "nothing")
    assert result.exit_code == 1
    assert "GB108" in result.stderr


def test_a_pipeline_with_errors_has_no_plan(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, TEXT.replace("gem: filter", "gem: filtre"))
    result = cli("plan", str(file), "--format", "json")
    assert result.exit_code == 1
    content = json.loads(result.stdout)
    assert content["targets"] == {}
    assert "GB201" in [found["code"] for found in content["diagnostics"]]


@pytest.mark.parametrize("kind", ["transform", "target"])
@pytest.mark.parametrize(
    ("before", "after", "tense"),
    [("", "def f(x", "is"), ("def f(x): pass", "", "is"), ("", "def f(x): pass", "was")],
)
def test_code_that_was_not_found_on_one_side_is_not_known_to_have_changed(
    cli: Cli, tmp_path: Path, kind: str, before: str, after: str, tense: str
) -> None:
    step = '{gem: python, input: some, options: {function: "unfound_jobs:f"}}'
    text = TEXT.replace("  counts:", f"  called: {step}\n  counts:").replace(
        "input: some, options: {group", "input: called, options: {group"
    )
    if kind == "target":
        text = TEXT + '  each: {gem: foreach, input: some, options: {function: "unfound_jobs:f"}}\n'
    file, jobs = written(tmp_path, text), tmp_path / "unfound_jobs.py"
    for code in (before, after):
        jobs.unlink(missing_ok=True)
        if code:
            jobs.write_text(code)
        if code == before:
            left_by_a_run(file)
    result = cli("plan", str(file))
    assert "GB424" not in result.stdout
    assert f"has changed can't be known: there {tense} no source of it that can be read" in result.stdout
    assert "mixed" not in result.stdout
