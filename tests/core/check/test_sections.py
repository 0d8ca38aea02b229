"""The sections of the pipeline file that plugins read."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from gem_bundle import hookimpl
from gem_bundle.check.checker import check_file
from gem_bundle.describe.pipeline import pipeline_schema
from gem_bundle.pipeline.loader import LoadOptions
from gem_bundle.plugins import Registry, load_registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gem_bundle.check.checker import Checked


class Nightly(BaseModel):
    """A section."""

    model_config = ConfigDict(extra="forbid")

    at: str
    retries: int = Field(0, ge=0, description="How often it is tried again.")


class Hosted(Nightly):
    """A section that knows which Spark there is."""

    at: str = "noon"
    sparks: dict[str, str] = Field(default_factory=dict)

    def target_spark(self, profile: str | None) -> str | None:
        """The Spark of the profile."""
        return self.sparks.get(profile or "none")


@pytest.fixture
def registering() -> Iterator[Any]:
    """Makes a registry with a plugin that registers these sections, and the built-in source and target."""
    modules = []

    def load(*sections: tuple[Any, ...]) -> Registry:
        def gem_bundle_register_sections(register: Any) -> None:
            for section in sections:
                register(*section)

        module = ModuleType(f"gem_bundle_test_sections_{len(modules)}")
        vars(module).update(gem_bundle_register_sections=hookimpl(gem_bundle_register_sections))
        sys.modules[module.__name__] = module
        modules.append(module.__name__)
        plugins = ["gem_rate", "gem_debug", module.__name__]
        return load_registry({}, [EntryPoint(name, name, "gem_bundle") for name in plugins])

    yield load
    for name in modules:
        del sys.modules[name]


NIGHTLY = ("job", f"{__name__}:Nightly")


def check(folder: Path, section: str, registry: Registry, **parameters: Any) -> Checked:
    file = folder / "p.yaml"
    file.write_text(
        f"pipeline: p\nparameters: {{hour: 4}}\n{section}\n"
        "sources: {s: {gem: rate}}\ntargets: {t: {gem: noop, input: s}}\n"
    )
    return check_file(file, LoadOptions(parameters, environment={}), registry)


def test_what_a_plugin_reads_is_handed_on(tmp_path: Path, registering: Any) -> None:
    checked = check(tmp_path, "job: {at: 'daily at ${hour}', retries: 2}", registering(NIGHTLY), hour=5)

    assert checked.diagnostics == []
    assert checked.definition is not None
    assert checked.definition.sections == {"job": {"at": "daily at 5", "retries": 2}}


def test_a_section_is_checked_like_the_rest_of_the_file(tmp_path: Path, registering: Any) -> None:
    checked = check(tmp_path, "job: {retires: 2, retries: -1}", registering(NIGHTLY))

    assert [(d.code, d.line, d.column, d.message, d.hint) for d in checked.diagnostics] == [
        ("GB006", 3, 1, "job: `at` is missing", ""),
        ("GB004", 3, 7, "job: unknown key `retires`", "Did you mean `retries`?"),
        ("GB005", 3, 28, "job: `retries` must be greater than or equal to 0, not `-1`", ""),
    ]
    assert checked.plan is None


def test_a_section_that_is_no_mapping(tmp_path: Path, registering: Any) -> None:
    checked = check(tmp_path, "job: every night", registering(NIGHTLY))

    assert [(d.code, d.line) for d in checked.diagnostics] == [("GB005", 3)]


def test_a_section_that_nobody_reads(tmp_path: Path, registering: Any) -> None:
    checked = check(tmp_path, "job: {at: noon}", registering())

    assert [(d.code, d.severity, d.line, d.message) for d in checked.diagnostics] == [
        ("GB020", "warning", 3, "no installed plugin reads the section `job`")
    ]
    assert checked.plan is not None


@pytest.mark.parametrize(
    "model", ["tests.core.check.test_sections:Missing", "tests.core.check.test_sections:NIGHTLY"]
)
def test_a_section_whose_model_is_broken(tmp_path: Path, registering: Any, model: str) -> None:
    checked = check(tmp_path, "job: {at: noon}", registering(("job", model)))

    assert [(d.code, d.severity, d.line) for d in checked.diagnostics] == [("GB202", "error", 3)]
    assert model in checked.diagnostics[0].message


@pytest.mark.parametrize(
    ("sections", "problem"),
    [
        ([("jobs", NIGHTLY[1])], "the sections of plugins are `job`, and not 'jobs'"),
        ([("job", "nothing")], "must be 'module:Class', not 'nothing'"),
        ([("job", Nightly)], "must be 'module:Class'"),
    ],
)
def test_a_plugin_that_registers_nonsense_is_broken(sections: Any, problem: str, registering: Any) -> None:
    registry = registering(*sections)

    assert problem in registry.broken[0].error
    assert registry.sections == {}


def test_two_plugins_can_not_read_one_section(registering: Any) -> None:
    first, second = (registering(NIGHTLY) for _ in range(2))
    assert not first.broken
    assert not second.broken
    names = [name for name in sys.modules if name.startswith("gem_bundle_test_sections_")]
    both = load_registry({}, [EntryPoint(name, name, "gem_bundle") for name in names])

    assert "the section `job` is read by" in both.broken[0].error
    assert list(both.sections) == ["job"]


def test_the_schema_of_the_pipeline_file_has_the_section(registering: Any) -> None:
    schema = pipeline_schema(registering(NIGHTLY))

    assert "#/$defs/section/job" in str(schema["properties"]["job"])
    assert "How often it is tried again." in str(schema["$defs"]["section"]["job"])
    assert "$ref" not in str(pipeline_schema(registering())["properties"]["job"])


HOSTED = ("job", f"{__name__}:Hosted")
NEWER = "\nprofiles: {prod: {hour: 5}}\nspark: {spark.sql.streaming.realTimeMode.minBatchDuration: 1000}"


@pytest.mark.parametrize(
    ("section", "profile", "told"),
    [
        ('{sparks: {none: "4.0"}}', None, "4.0"),
        ('{sparks: {none: "4.2", prod: "4.0.1"}}', "prod", "4.0.1"),
        ('{sparks: {none: "4.0", prod: "4.1"}}', "prod", None),
        ('{sparks: {none: "4.1"}}', None, None),
        ("{}", None, "3.5"),
        ("{sparks: 4}", None, "3.5"),
    ],
)
def test_a_section_says_which_spark_a_pipeline_is_for(
    section: str, profile: str | None, told: str | None, tmp_path: Path, registering: Any
) -> None:
    (tmp_path / "gem-bundle.toml").write_text('[check]\nspark_version = "3.5"\n')
    (tmp_path / "p.yaml").write_text(
        f"pipeline: p\nparameters: {{hour: 4}}\njob: {section}{NEWER}\n"
        "sources: {s: {gem: rate}}\ntargets: {t: {gem: noop, input: s}}\n"
    )
    checked = check_file(
        tmp_path / "p.yaml", LoadOptions({}, profile=profile, environment={}), registering(HOSTED)
    )
    setting = "spark.sql.streaming.realTimeMode.minBatchDuration"

    assert [(d.line, d.message) for d in checked.diagnostics if d.code == "GB370"] == (
        [(5, f"Spark has the setting `{setting}` since 4.1; Spark {told} ignores it")] if told else []
    )
    assert all(
        ("section `job`" in d.hint) == (told != "3.5") for d in checked.diagnostics if d.code == "GB370"
    )
