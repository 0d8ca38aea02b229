"""`check_file` from end to end: what is wrong with a file, where, and what to do about it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle import Facts, Field, Options, Source, Target, Transform
from gem_bundle.check.checker import Checked, check_file
from gem_bundle.pipeline.loader import LoadOptions
from gem_bundle.pipeline.secrets import SecretStore
from gem_bundle.plugins import GemEntry, Origin, Registry
from tests.core.checking import check, found, marked, registry

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "pipeline: p\nsources:\n  a: {gem: topic, options: {topic: t}}\n"
TAIL = "targets:\n  t: {gem: sink, input: a}\n"


def diagnose(text: str, options: LoadOptions | None = None) -> tuple[Checked, list[tuple[int, int]]]:
    clean, places = marked(text)
    return check(clean, options), places


def only(text: str, code: str) -> str:
    """The message and the hint of the only thing that is wrong, at the marked place."""
    checked, (place,) = diagnose(text)
    assert found(checked) == [(code, *place)]
    (diagnostic,) = checked.diagnostics
    assert (checked.plan is None) == diagnostic.is_error
    return f"{diagnostic.message} | {diagnostic.hint}"


def test_a_right_pipeline() -> None:
    checked = check(HEAD + TAIL)

    assert checked.ok
    assert checked.diagnostics == []
    assert checked.plan is not None
    assert checked.plan.order == ("a", "t")
    assert set(checked.plan.gems) == {"a", "t"}
    facts = checked.plan.facts["a"]
    assert (facts.streaming, facts.bounded) == (True, False)
    assert [column.name for column in facts.columns or ()] == ["value"]


# The matrix of bad input: each is one diagnostic, at the key that must change, with a remedy


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ("topic: t(a, ▶b)", "GB204", "no option `b)`"),
        ("topic: 'map<a', ▶b c>", "GB204", "no option `b c>`"),
        ("topic: a b, ▶c d", "GB204", "no option `c d`"),
    ],
)
def test_a_value_that_a_comma_cut_in_two_is_told_so(options: str, code: str, message: str) -> None:
    said = only(f"pipeline: p\nsources:\n  a: {{gem: topic, options: {{{options}}}}}\n{TAIL}", code)

    assert message in said
    assert "belongs to the value before it, put that value in quotes" in said


def test_an_unknown_gem_is_answered_with_what_exists() -> None:
    text = "pipeline: p\nsources:\n  a: {gem: ▶%s}\ntargets: {t: {gem: sink, input: a}}"

    assert only(text % "tpoic", "GB201") == ("`a`: there is no source gem `tpoic` | Did you mean `topic`?")
    assert only(text % "zzz", "GB201") == (
        "`a`: there is no source gem `zzz` | Known source gems: `pages`, `ticks`, `topic`."
    )
    assert only(text % "sink", "GB201") == (
        "`a`: there is no source gem `sink` | `sink` is a target. "
        "Known source gems: `pages`, `ticks`, `topic`."
    )


def test_an_unknown_gem_while_plugins_are_broken() -> None:
    from gem_bundle.plugins import BrokenPlugin

    gems = registry()
    gems.broken.append(BrokenPlugin(Origin("acme", "acme-gems", "2.1"), "ImportError: no"))
    from gem_bundle.check.checker import check_definition
    from tests.core.checking import load

    checked = check_definition(load(HEAD + "targets: {t: {gem: acme, input: a}}"), gems)

    assert "(acme-gems 2.1)" in checked.diagnostics[0].hint
    assert "gem-bundle gems" in checked.diagnostics[0].hint


OPTIONS = "pipeline: p\nsources:\n  a:\n    gem: topic\n    options:\n      topic: t\n      %s\n" + TAIL


@pytest.mark.parametrize(
    ("option", "code", "said"),
    [
        ("▶optin: 1", "GB204", "`a`: `topic` has no option `optin`"),
        ("▶limits: 1", "GB204", "Did you mean `limit`?"),
        ("▶zzz: 1", "GB204", "go into `spark_options`"),
        ("limit: ▶many", "GB205", "`limit` must be a whole number, not `many`"),
        ("limit: ▶0", "GB205", "`limit` must be greater than 0, not `0`"),
        ("limit: ▶1.5", "GB205", "`limit` must be a whole number, not `1.5`"),
        ("limit: ▶true", "GB205", "`limit` must be a number, not `true`"),
        ("limit: ▶[1]", "GB205", "`limit` must be a whole number, not a list"),
        ("maxOffsetsPerTrigger: ▶x", "GB205", "`maxOffsetsPerTrigger` must be a whole number"),
        ("start: ▶middle", "GB205", "`start` must be `earliest` or `latest`, not `middle`"),
        ("brokers: ▶nowhere", "GB205", "write brokers as `host:port`"),
        ("columns: [a, ▶5]", "GB205", "`columns[1]` must be a text, not `5` | Put it in quotes."),
        ("every: ▶5", "GB205", "`5 seconds`"),
        ("shape: ▶a", "GB205", "the column `a` has no type"),
        ("path: ▶''", "GB205", "a path can't be empty"),
        ("password: ▶ab", "GB205", "`password` must have at least 3"),
        ("spark_options: {a: ▶[1]}", "GB205", "`spark_options.a` must be a text"),
        ("limit: 1\n      ▶maxOffsetsPerTrigger: 1", "GB208", "are the same option"),
    ],
)
def test_options(option: str, code: str, said: str) -> None:
    assert said in only(OPTIONS % option, code)


def test_an_option_without_a_value_is_not_given() -> None:
    assert check(OPTIONS % "path:").ok


def test_a_missing_required_option() -> None:
    assert (
        only("pipeline: p\nsources:\n  ▶a: {gem: topic}\n" + TAIL, "GB206")
        == "`a`: `topic` needs the option `topic` | "
    )
    only("pipeline: p\nsources:\n  a:\n    gem: topic\n    ▶options: {limit: 1}\n" + TAIL, "GB206")
    only("pipeline: p\nsources:\n  a:\n    gem: topic\n    ▶options:\n" + TAIL, "GB206")


def test_exclusive_options_both_given() -> None:
    text = "pipeline: p\nsources:\n  a:\n    gem: topic\n    ▶options: {topic: t, include: a, exclude: b}\n"

    assert only(text + TAIL, "GB207") == "`a`: give either `include` or `exclude` | "


def test_nested_options() -> None:
    text = HEAD + "transforms:\n  b: {gem: shape, input: a, options: {%s}}\n"
    text += "targets: {t: {gem: sink, input: b}}"

    assert "`window.duration` can't be `soon`" in only(text % "window: {column: x, duration: ▶soon}", "GB205")
    assert "needs the option `window.column`" in only(text % "▶window: {}", "GB206")
    assert "Did you mean `duration`?" in only(text % "window: {column: x, ▶durtion: 1 day}", "GB204")
    assert "`columns.x`" in only(text % "columns: {x: ▶f(}", "GB205")
    assert "`columns[0]`" in only(text % "columns: [▶'a)']", "GB205")


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("{gem: shape, inputs: ▶[a, b]}", "`shape` takes one input, not 2"),
        ("{gem: pair, input: ▶a}", "`pair` takes 2 inputs, not 1 | Write `inputs: [first, second]`"),
        ("{gem: pair, inputs: ▶[a]}", "`pair` takes 2 inputs, not 1"),
        ("{gem: pair, inputs: ▶{x: a, y: b, z: a}}", "`pair` takes 2 inputs, not 3"),
    ],
)
def test_too_few_or_too_many_inputs(node: str, said: str) -> None:
    text = HEAD + f"  b: {{gem: ticks}}\ntransforms:\n  c: {node}\n"
    text += "targets: {t: {gem: sink, input: c}, u: {gem: sink, input: b}}"

    assert said in only(text, "GB105")


def test_a_cycle_an_unknown_input_and_nothing_to_write() -> None:
    text = HEAD + "transforms: {b: {gem: mix, inputs: [a, ▶c]}, c: {gem: shape, input: b}}\n"
    assert "`b` ← `c` ← `b`" in only(text + "targets: {t: {gem: sink, input: c}}", "GB102")
    assert "Did you mean `clicks`?" in only(
        "pipeline: p\nsources: {clicks: {gem: ticks}}\ntargets: {t: {gem: sink, input: ▶clikcs}}",
        "GB101",
    )
    assert "no target" in only("pipeline: p\nsources: {a: {gem: ticks}}\n▶targets:", "GB107")


def test_an_unused_node_is_a_warning() -> None:
    checked, (place,) = diagnose(HEAD + "  ▶b: {gem: ticks}\n" + TAIL)

    assert [(d.code, d.severity, d.line, d.column) for d in checked.diagnostics] == [
        ("GB103", "warning", *place)
    ]
    assert checked.ok
    assert checked.plan is not None


def test_outputs_are_named() -> None:
    text = HEAD + "transforms:\n  s: {gem: split, input: a}\ntargets:\n  t: {gem: sink, input: ▶%s}"

    assert "several outputs; name one | Write `s.good`, `s.bad`." in only(text % "s", "GB106")
    assert "has no output `ugly`" in only(text % "s.ugly", "GB106")
    assert check(marked(text % "s.bad")[0]).ok
    one = HEAD + "targets:\n  t: {gem: sink, input: ▶a.x}"
    assert "one output without a name | Write `a`." in only(one, "GB106")


def test_a_stream_into_a_batch_only_target() -> None:
    said = only(HEAD + "targets:\n  t: {gem: report, input: ▶a}", "GB311")

    assert said == (
        "target `t`: `report` takes static relations only, and `a` is a stream | "
        "Write `mode: batch` at the top of the file, or use another target."
    )
    assert check("mode: batch\n" + HEAD + "targets:\n  t: {gem: report, input: a}").ok


def test_an_output_mode_the_target_can_not_take() -> None:
    text = HEAD + "targets:\n  t:\n    gem: log\n    input: a\n    output_mode: ▶update\n"

    assert only(text, "GB310") == (
        "target `t`: `log` can't take the output mode `update`, only `append` | "
        "Use `append`, or a target that takes `update`."
    )


def test_a_batch_into_a_target_that_can_not_replace_its_rows() -> None:
    class Changing(Target):
        """Changes some rows."""

        from gem_bundle import TargetSemantics

        semantics = TargetSemantics(batch_modes=frozenset({"append"}))

    text = (
        "pipeline: p\nmode: batch\nsources: {a: {gem: pages}}\ntargets:\n  t: {gem: changing, input: a%s}\n"
    )
    clean, (place,) = marked(text % ", output_mode: ▶complete")
    checked = check(clean, target_changing=Changing)
    assert found(checked) == [("GB310", *place)]
    assert "`complete` replaces all" in checked.diagnostics[0].message
    assert check(text % "", target_changing=Changing).ok
    assert check(text.replace("changing", "sink") % ", output_mode: complete").ok


def test_an_output_mode_that_is_a_default_is_placed_at_the_target() -> None:
    class Whole(Target):
        """Complete only."""

        from gem_bundle import TargetSemantics

        semantics = TargetSemantics(output_modes=frozenset({"complete"}))

    clean, (place,) = marked(HEAD + "targets:\n  ▶t:\n    gem: whole\n    input: a\n")

    assert found(check(clean, target_whole=Whole)) == [("GB310", *place)]


def test_sources_are_read_in_a_way_they_can_be_read() -> None:
    assert "can't be read as a stream | Add `mode: batch`" in only(
        "pipeline: p\nsources: {a: {gem: ▶pages}}\ntargets: {t: {gem: sink, input: a}}", "GB312"
    )
    assert "can't be read as a static relation" in only(
        "pipeline: p\nmode: batch\nsources: {a: {gem: ▶ticks}}\ntargets: {t: {gem: sink, input: a}}",
        "GB312",
    )
    assert "can't be read as a static relation" in only(
        HEAD + "  b: {gem: ticks, mode: ▶batch}\ntransforms: {c: {gem: pair, inputs: [a, b]}}\n"
        "targets: {t: {gem: sink, input: c}}",
        "GB312",
    )


def test_a_streaming_pipeline_needs_a_stream() -> None:
    assert "everything behind `a` is static" in only(
        "pipeline: p\nsources: {a: {gem: pages, mode: batch}}\ntargets: {t: {gem: sink, input: ▶a}}",
        "GB313",
    )
    assert "takes streams only" in only(
        "pipeline: p\nmode: batch\nsources: {a: {gem: pages}}\ntargets: {t: {gem: ▶screen, input: a}}",
        "GB313",
    )


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("targets: {t: {gem: sink, input: a, trigger: ▶{once: true}}}", "GB314", "no trigger"),
        ("targets: {t: {gem: sink, input: a, output_mode: ▶update}}", "GB310", "not update it"),
    ],
)
def test_a_batch_pipeline_has_no_micro_batches(text: str, code: str, said: str) -> None:
    assert said in only("mode: batch\n" + HEAD + text, code)


def test_triggers_that_a_target_or_a_source_can_not_take() -> None:
    text = HEAD + "targets:\n  t: {gem: %s, input: a, trigger: ▶{continuous: 1 second}}"

    assert "`sink` can't be run with the trigger `continuous`" in only(text % "sink", "GB314")

    class Fast(Target):
        """Continuous, too."""

        from gem_bundle import TargetSemantics

        semantics = TargetSemantics(triggers=frozenset({"default", "continuous"}))

    clean, (place,) = marked(text % "fast")
    checked = check(clean, target_fast=Fast)
    assert found(checked) == [("GB314", *place)]
    assert "the source `a` (`topic`)" in checked.diagnostics[0].message


def test_a_missing_parameter_variable_and_secret() -> None:
    text, places = marked(
        "pipeline: p\nparameters: {▶need: {type: string}}\nsources:\n  a:\n    gem: topic\n"
        "    options:\n      topic: ${need}\n      path: ▶${env:GB_NOT_THERE}\n"
        "      password: ▶${secret:kafka/password}\n" + TAIL
    )
    checked = check(text, LoadOptions(environment={}, secrets=SecretStore({})))
    codes = ["GB011", "GB014", "GB015"]

    assert found(checked) == [(c, *place) for c, place in zip(codes, places, strict=True)]
    parameter, variable, secret = checked.diagnostics
    assert "`-p need=…`" in parameter.hint
    assert "`export GB_NOT_THERE=…`" in variable.hint
    for place in ("GEM_BUNDLE_SECRET_KAFKA_PASSWORD", "GEM_BUNDLE_SECRETS_DIR", "Databricks"):
        assert place in secret.hint


def test_all_that_is_wrong_is_said_at_once() -> None:
    text, places = marked(
        """\
pipeline: ▶Clicks
▶colour: blue
parameters:
  topic: clicks
  ▶need: {type: integer}
sources:
  a:
    gem: topic
    options: {topic: "${topic}", ▶limits: 1, brokers: ▶nowhere}
  ▶b: {gem: topic}
  c: {gem: ▶topci}
  ▶lonely: {gem: ticks}
  static: {gem: pages, mode: batch}
transforms:
  d: {gem: shape, input: a, options: {columns: ▶"${topci}"}}
  e: {gem: mix, inputs: [a, ▶f]}
  f: {gem: shape, input: e}
  ▶a: {gem: shape, input: d}
targets:
  t: {gem: log, input: d, output_mode: ▶complete}
  u: {gem: report, input: ▶d}
  v: {gem: sink, input: ▶nothing, trigger: ▶{continuous: 1 second}}
  w: {gem: sink, input: ▶static}
  x: {gem: sink, input: f}
  y: {gem: sink, input: b}
  z: {gem: sink, input: c}
"""
    )
    codes = "GB017 GB004 GB011 GB204 GB205 GB206 GB201 GB103 GB010 GB102 GB104"
    codes += " GB310 GB311 GB101 GB314 GB313"
    checked = check(text)

    assert [(d.line, d.column, d.code) for d in checked.diagnostics] == [
        (*place, code) for place, code in zip(places, codes.split(), strict=True)
    ]
    assert all(d.hint for d in checked.diagnostics if d.code not in {"GB206", "GB205"})


def test_output_is_in_the_order_of_the_file_and_each_said_once() -> None:
    text = "pipeline: p\nsources: {a: {gem: x}, b: {gem: x}}\ntargets: {t: {gem: y, input: a}}"
    places = [(d.line, d.column) for d in check(text).diagnostics]

    assert places == sorted(places)
    assert len(set(check(text).diagnostics)) == len(check(text).diagnostics)


# Gems that fail


class FragileOptions(Options):
    """What goes wrong."""

    how: str = Field("", description="Where it fails.")


def fragile(kind: type[Any]) -> type[Any]:
    """A gem that raises where its options say, or returns nonsense."""

    class Fragile(kind[FragileOptions]):  # type: ignore[misc]
        """Fails."""

        def __init__(self, options: FragileOptions) -> None:
            if options.how == "init":
                raise KeyError("init")
            super().__init__(options)

        def _fail(self, where: str, otherwise: object) -> Any:
            if self.options.how == where:
                raise KeyError(where)
            return 5 if self.options.how == f"{where} nonsense" else otherwise

        def infer(self, *inputs: Facts) -> Any:
            """Maybe."""
            return self._fail("infer", Facts())

        def check(self, *inputs: Facts) -> Any:
            """Maybe."""
            return self._fail("check", [])

        def outputs(self) -> Any:
            """Maybe."""
            return self._fail("outputs", ())

    return Fragile


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("source", "infer"),
        ("source", "infer nonsense"),
        ("source", "check"),
        ("source", "check nonsense"),
        ("transform", "infer"),
        ("transform", "infer nonsense"),
        ("transform", "check"),
        ("transform", "check nonsense"),
        ("transform", "outputs"),
    ],
)
def test_a_gem_that_fails_loses_its_part_of_the_check_only(kind: str, how: str) -> None:
    text = f"gem: ▶fragile, options: {{how: {how}}}"
    nodes = {
        "source": f"sources: {{a: {{{text}}}}}\ntransforms: {{b: {{gem: shape, input: a}}}}",
        "transform": f"sources: {{a: {{gem: ticks}}}}\ntransforms: {{b: {{{text}, input: a}}}}",
    }
    clean, (place,) = marked(f"pipeline: p\n{nodes[kind]}\ntargets: {{t: {{gem: sink, input: b}}}}")
    gem = {"source": Source, "transform": Transform}[kind]
    gems: dict[str, Any] = {f"{kind}_fragile": fragile(gem)}
    checked = check(clean, None, **gems)

    (diagnostic,) = checked.diagnostics
    assert (diagnostic.code, diagnostic.severity) == ("GB203", "warning")
    assert (diagnostic.line, diagnostic.column) == place
    assert f"fails in `{how.removesuffix(' nonsense')}`" in diagnostic.message
    assert checked.plan is not None


def test_a_gem_that_can_not_be_made() -> None:
    clean, (place,) = marked(
        "pipeline: p\nsources: {a: {gem: ▶fragile, options: {how: init}}}\n"
        "targets: {t: {gem: sink, input: a}}"
    )
    checked = check(clean, source_fragile=fragile(Source))

    assert found(checked) == [("GB202", *place)]
    assert "KeyError" in checked.diagnostics[0].message
    assert "tests 1.0" in checked.diagnostics[0].hint


def test_a_validator_that_fails_with_a_bug() -> None:
    from pydantic import field_validator

    class Buggy(Options):
        x: str = Field("", description="x")

        @field_validator("x")
        @classmethod
        def _check(cls, value: str) -> str:
            return {"": ""}[value]

    class BuggySource(Source[Buggy]):
        """Has a bug."""

    text = "pipeline: p\nsources: {a: {gem: buggy, options: {x: 1a, y: 2}}}\n" + TAIL
    checked = check(text, source_buggy=BuggySource)

    assert [d.code for d in checked.diagnostics] == ["GB202", "GB204"]


def test_a_gem_that_can_not_be_loaded_and_one_with_two_owners() -> None:
    gems = registry()
    gems.add(GemEntry("source", "lost", "gem_bundle_not_there:X", Origin("p", "lost-gems", "1")))
    gems.add(GemEntry("source", "ticks", Source, Origin("q", "other-gems", "2")))
    from gem_bundle.check.checker import check_definition
    from tests.core.checking import load

    clean, places = marked(
        "pipeline: p\nsources: {a: {gem: ▶lost}, b: {gem: ▶ticks}}\n"
        "targets: {t: {gem: sink, input: a}, u: {gem: sink, input: b}}"
    )
    checked = check_definition(load(clean), gems)

    assert found(checked) == [("GB202", *place) for place in places]
    lost, twice = checked.diagnostics
    assert "`a`: the source `lost` of `lost-gems 1` can't be loaded" in lost.message
    assert "`tests 1.0` (plugin `tests`) and `other-gems 2` (plugin `q`)" in twice.message


def test_a_finding_is_placed_at_its_option_in_the_spelling_of_the_file() -> None:
    text = HEAD + "transforms: {b: {gem: shape, input: a, options: {%s}}}\n"
    text += "targets: {t: {gem: sink, input: b}}"
    for option in ("warn: ▶true", "Warn: ▶true"):
        checked, (place,) = diagnose(text % option)

        assert [(d.code, d.severity, d.line, d.column) for d in checked.diagnostics] == [
            ("GB205", "warning", *place)
        ]
        assert checked.diagnostics[0].message == "transform `b`: this is said by the gem"
        assert checked.ok


def test_a_plan_needs_every_gem() -> None:
    text = HEAD.replace("topic: t", "topic: t, limit: '${secret:a/b}'") + TAIL
    checked = check(text)

    assert checked.ok
    assert checked.diagnostics == []
    assert checked.plan is None
    store = SecretStore({"GEM_BUNDLE_SECRET_A_B": "5"})
    assert check(text, LoadOptions(environment={}, secrets=store)).plan is not None


# A pipeline file is data

HARMFUL = """\
pipeline: p
sources:
  a: {gem: rate}
transforms:
  b: {gem: python, input: a, options: {function: "harmful_job:clean"}}
  c: {gem: python, input: b, options: {function: "harmful_package.inner:clean"}}
targets:
  t: {gem: foreach_batch, input: c, options: {function: "harmful_job:write"}}
  u: {gem: foreach, input: c, options: {function: "harmful_job:Writer"}}
"""

PARTS = """\
def clean(frame): return frame
def write(frame, epoch): pass
class Writer:
    def process(self, row): pass
"""

PROBE = """\
import sys
from gem_bundle.check import check_file
from gem_bundle.plugins import load_registry
load_registry()  # what the user's folder could do is done by now, or not at all
checked = check_file(sys.argv[1])
print(checked.ok, [d.code for d in checked.diagnostics])
print([m for m in ("pyspark", "py4j", "delta", "kafka", "harmful_job", "harmful_package", "pandas")
       if m in sys.modules])
"""


def probe(folder: Path, text: str) -> list[str]:
    """Check a file in a process of its own, whose path begins with the file's folder."""
    (folder / "p.yaml").write_text(text)
    harm = "open(__file__ + '.owned', 'w').close()\n" + PARTS
    (folder / "harmful_job.py").write_text(harm)
    (folder / "harmful_package").mkdir()
    for name in ("__init__.py", "inner.py"):
        (folder / "harmful_package" / name).write_text(harm)
    (folder / "probe.py").write_text(PROBE)
    result = subprocess.run(
        [sys.executable, "probe.py", "p.yaml"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not list(folder.rglob("*.owned"))
    return result.stdout.splitlines()


@pytest.mark.programs
def test_a_check_runs_no_code_of_the_pipeline_s_and_needs_no_spark(tmp_path: Path) -> None:
    assert probe(tmp_path, HARMFUL) == ["True ['GB341', 'GB341']", "[]"]


@pytest.mark.programs
def test_tags_run_nothing(tmp_path: Path) -> None:
    tags = HARMFUL.replace("{gem: rate}", "!!python/object/apply:harmful_job.run [1]")
    verdict, imported = probe(tmp_path, tags)

    assert verdict.startswith("False")
    assert "GB007" in verdict
    assert imported == "[]"


def test_names_of_files_and_gems_open_nothing(tmp_path: Path) -> None:
    text = (
        "pipeline: p\nsources: {a: {gem: ../../harmful_job, options: {path: /etc/passwd}}}\n"
        "targets: {t: {gem: 'harmful_job:X', input: a}}"
    )
    (tmp_path / "p.yaml").write_text(text)
    checked = check_file(tmp_path / "p.yaml", registry=Registry())

    assert [d.code for d in checked.diagnostics] == ["GB201", "GB201"]


def test_a_file_that_can_not_be_read(tmp_path: Path) -> None:
    checked = check_file(tmp_path / "absent.yaml")

    assert [d.code for d in checked.diagnostics] == ["GB001"]
    assert checked.definition is None
    assert checked.plan is None
    assert not checked.ok
