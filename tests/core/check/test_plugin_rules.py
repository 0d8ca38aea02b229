"""Rules of plugins: what they see, where their findings stand, and what becomes of broken ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle import Finding, NodeView, PipelineView, hookimpl
from gem_bundle.check.checker import Checked, check_definition
from gem_bundle.pipeline.loader import LoadOptions
from gem_bundle.pipeline.secrets import HIDDEN, SecretStore
from gem_bundle.plugins import GROUP, Origin, Registry, Rule, load_registry
from tests.core.checking import load, marked, registry

if TYPE_CHECKING:
    from collections.abc import Iterable

EXAMPLE = Path(__file__).parents[3] / "examples" / "platform_rules"

TEXT = """\
pipeline: p
version: 1.2.0
profiles: {prod: {}}
spark: {spark.a: 1}
sources:
  a:
    gem: topic
    options: {topic: x, maxOffsetsPerTrigger: 5, columns: [one]}
  b: {gem: pages, mode: batch}
transforms:
  c: {gem: mix, inputs: [a, b]}
targets:
  ▶t:
    gem: ▶sink
    input: c
    trigger: ▶{available_now: true}
    output_mode: update
"""


def with_rule(rule: Any) -> Registry:
    """The gems of the tests, and one plugin that has a rule."""

    class Plugin:
        @staticmethod
        @hookimpl
        def gem_bundle_check_pipeline(pipeline: PipelineView) -> object:
            return rule(pipeline)

    import pluggy

    from gem_bundle import hookspecs

    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    manager.register(Plugin, name="acme")
    found = registry()
    (hook,) = manager.hook.gem_bundle_check_pipeline.get_hookimpls()
    found.rules.append(Rule(Origin("acme", "acme-rules", "2.0"), hook))
    return found


def check(rule: Any, text: str = TEXT, **options: Any) -> Checked:
    plain, _ = marked(text)
    return check_definition(load(plain, LoadOptions(**{"environment": {}, **options})), with_rule(rule))


def view(text: str = TEXT, **options: Any) -> PipelineView:
    """The pipeline as a rule sees it."""
    seen: list[PipelineView] = []
    check(seen.append, text, **options)
    (pipeline,) = seen
    return pipeline


def said(*findings: object) -> list[tuple[str, str, str, int, int]]:
    """What becomes of what a rule says."""
    return [
        (d.code, d.severity, d.message, d.line, d.column)
        for d in check(lambda _: findings).diagnostics
        if d.code[:2] != "GB" or d.code == "GB203"
    ]


# What a rule sees


def test_what_a_rule_sees() -> None:
    pipeline = view(profile="prod")

    assert (pipeline.name, pipeline.version, pipeline.mode, pipeline.profile) == (
        "p",
        "1.2.0",
        "stream",
        "prod",
    )
    assert dict(pipeline.spark) == {"spark.a": "1"}
    assert list(pipeline.nodes) == ["a", "b", "c", "t"]
    a, b, c, t = pipeline.nodes.values()
    assert (a.id, a.kind, a.gem, a.mode, a.inputs) == ("a", "source", "topic", "stream", ())
    assert dict(a.options) == {"topic": "x", "limit": 5, "columns": ["one"]}
    assert b.mode == "batch"
    assert (c.kind, c.inputs, c.mode, c.output_mode, c.trigger) == ("transform", ("a", "b"), None, None, None)
    assert (t.output_mode, t.trigger, t.inputs) == ("update", "available_now", ("c",))
    assert a.facts is not None
    assert a.facts.streaming
    assert t.facts is not None
    assert t.facts.streaming
    assert pipeline.of_kind("source") == [a, b]
    assert pipeline.of_kind("source", "pages") == [b]
    assert view().profile is None


def test_secrets_are_not_seen() -> None:
    text = (
        "pipeline: p\n"
        "spark: {spark.key: '${secret:s/k}'}\n"
        "sources: {a: {gem: topic, options: {topic: 'x-${secret:s/k}', password: plainly,\n"
        "  spark_options: {b: '${secret:s/k}', c: d}}}}\n"
        "targets: {t: {gem: sink, input: a}}\n"
    )
    environment = {"GEM_BUNDLE_SECRET_S_K": "sesame"}
    for secrets in (None, SecretStore(environment)):
        pipeline = view(text, environment=environment, secrets=secrets)
        options = pipeline.nodes["a"].options
        assert "sesame" not in f"{pipeline}"
        assert options["password"] == HIDDEN
        assert options["spark_options"] == {"b": HIDDEN, "c": "d"}


def test_nothing_can_be_changed() -> None:
    def rule(pipeline: PipelineView) -> None:
        pipeline.nodes["a"].options["columns"].append("two")
        with pytest.raises(TypeError):
            pipeline.nodes["a"].options["limit"] = 7  # type: ignore[index]
        with pytest.raises(AttributeError):
            pipeline.nodes["a"].id = "z"  # type: ignore[misc]

    checked = check(rule)

    assert checked.plan is not None
    assert checked.plan.node("a").options["columns"] == ["one"]


def test_a_pipeline_with_errors_is_seen_as_far_as_it_goes() -> None:
    pipeline = view(TEXT.replace("gem: topic", "gem: tropic").replace("input: c", "input: zz"))

    assert pipeline.nodes["a"].options["maxOffsetsPerTrigger"] == 5
    assert pipeline.nodes["t"].facts is None


# Where findings stand


PLACES = marked(TEXT)[1]


@pytest.mark.parametrize(
    ("finding", "message", "place"),
    [
        (Finding("ACME001", "no"), "no", (1, 1)),
        (Finding("ACME001", "no", node="t"), "target `t`: no", PLACES[0]),
        (Finding("ACME001", "no", node="t", key="gem"), "target `t`: no", PLACES[1]),
        (Finding("ACME001", "no", node="t", key="trigger"), "target `t`: no", PLACES[2]),
        (Finding("ACME001", "no", node="b", key="options"), "source `b`: no", (9, 3)),
        (Finding("ACME001", "no", node="a", option="limit"), "source `a`: no", (8, 47)),
        (Finding("ACME001", "no", node="a", option=("columns", 0)), "source `a`: no", (8, 60)),
        (Finding("ACME001", "no", node="a", option="path"), "source `a`: no", (8, 5)),
    ],
)
@pytest.mark.parametrize("severity", ["error", "warning", "note"])
def test_where_a_finding_stands(
    finding: Finding, message: str, place: tuple[int, int], severity: Any
) -> None:
    from dataclasses import replace

    assert said(replace(finding, severity=severity)) == [("ACME001", severity, message, *place)]


def test_an_error_of_a_rule_stops_a_run() -> None:
    assert check(lambda _: [Finding("ACME001", "no")]).plan is None
    assert check(lambda _: [Finding("ACME001", "no", severity="warning")]).plan is not None


def test_a_warning_of_a_rule_can_be_silenced() -> None:
    text = TEXT.replace("gem: ▶sink", "gem: sink  # gem-bundle: ignore ACME001")
    rule = [Finding("ACME001", "no", node="t", key="gem", severity="warning")]

    assert [d.code for d in check(lambda _: rule, text).diagnostics] == []


@pytest.mark.parametrize("nothing", [None, (), [], iter(())])
def test_a_rule_that_finds_nothing(nothing: Iterable[Finding] | None) -> None:
    assert check(lambda _: nothing).diagnostics == []


# Broken ones


def fails(pipeline: PipelineView) -> Iterable[Finding]:
    yield Finding("ACME001", "this is lost with the rest")
    raise KeyError(pipeline.name)


def leaves(pipeline: PipelineView) -> Iterable[Finding]:
    sys.exit("bye")


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        (fails, "KeyError: 'p'"),
        (leaves, "SystemExit: bye"),
        (lambda _: [1], "TypeError: a rule gives findings, not 1"),
        (lambda _: 1, "TypeError: 'int' object is not iterable"),
        (
            lambda _: [Finding("GB301", "x")],
            "ValueError: a code of a plugin's own is like ACME001, not 'GB301'",
        ),
        (
            lambda _: [Finding("acme", "x")],
            "ValueError: a code of a plugin's own is like ACME001, not 'acme'",
        ),
        (lambda _: [Finding("A1", "x", node="z")], "ValueError: the pipeline has no node 'z'"),
        (
            lambda _: [Finding("A1", "x", severity="bad")],  # type: ignore[arg-type]
            "ValueError: a severity is error, warning or note, not 'bad'",
        ),
    ],
)
def test_a_broken_rule_is_named_and_takes_nothing_down(rule: Any, error: str) -> None:
    checked = check(rule)
    (diagnostic,) = checked.diagnostics

    assert checked.plan is not None
    assert (diagnostic.code, diagnostic.severity, diagnostic.line) == ("GB203", "warning", 1)
    assert diagnostic.message == f"the rules of the plugin `acme` of `acme-rules 2.0` fail: {error}"


def test_the_views_are_public() -> None:
    assert NodeView.__module__ == PipelineView.__module__ == "gem_bundle.views"


# The example


def declared() -> dict[str, str]:
    """The example's own entry points."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: dict[str, str] = project["entry-points"][GROUP]
    return found


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """All gems, and the example plugin beside them."""
    monkeypatch.syspath_prepend(EXAMPLE)
    points = [EntryPoint(name, value, GROUP) for name, value in declared().items()]
    return load_registry({}, [*entry_points(group=GROUP), *points])


KAFKA = """\
pipeline: clicks
profiles: {{prod: {{}}, dev: {{}}}}
sources:
  clicks:
    gem: kafka
    ▶options:
      bootstrap_servers: ["localhost:9092"]
      subscribe: clicks
      {option}
targets:
  screen: {{gem: ▶console, input: clicks}}
"""


@pytest.mark.parametrize(
    ("profile", "option", "codes"),
    [
        ("prod", "", ["ACME002", "ACME001"]),
        ("dev", "", ["ACME002"]),
        (None, "", ["ACME002"]),
        ("prod", "fail_on_data_loss: true", ["ACME001"]),
        ("prod", "failOnDataLoss: false", ["ACME001"]),
        (None, "failOnDataLoss: false", []),
    ],
)
def test_the_example(installed: Registry, profile: str | None, option: str, codes: list[str]) -> None:
    plain, (options, console) = marked(KAFKA.format(option=option))
    checked = check_definition(load(plain, LoadOptions(environment={}, profile=profile)), installed)

    places = {"ACME002": options, "ACME001": console}
    assert [(d.code, (d.line, d.column)) for d in checked.diagnostics] == [(c, places[c]) for c in codes]
    assert (checked.plan is None) == ("ACME001" in codes)
    assert installed.broken == []


@pytest.mark.programs
def test_the_example_when_it_is_installed(tmp_path: Path) -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    shutil.copytree(EXAMPLE / "acme_platform_rules", tmp_path / "acme_platform_rules")
    info = tmp_path / f"acme_platform_rules-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = "".join(f"{name} = {value}\n" for name, value in declared().items())
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{points}")
    (tmp_path / "p.yaml").write_text(marked(KAFKA.format(option=""))[0])
    done = subprocess.run(
        [sys.executable, "-m", "gem_bundle", "check", "--profile", "prod", "--format", "json", "p.yaml"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert [found["code"] for found in json.loads(done.stdout)["diagnostics"]] == ["ACME002", "ACME001"]
    assert done.returncode == 1
