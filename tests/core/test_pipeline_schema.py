"""The JSON Schema of the pipeline file: it takes what a check takes, and refuses what nobody could mean."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BeforeValidator, PlainValidator

from gem_bundle import Field, Options, Source
from gem_bundle.check.checker import check_definition
from gem_bundle.check.stages.gems import make_gem
from gem_bundle.codes import CODES
from gem_bundle.describe import json_schema, pipeline_schema
from gem_bundle.pipeline.document import parse
from gem_bundle.pipeline.loader import LoadOptions, load_values
from gem_bundle.pipeline.model import SECTIONS, Input, Node
from gem_bundle.plugins import GemEntry, Origin, Registry, load_registry
from tests.core.check.test_fuzz import FUZZ, PIPELINE, SCALARS, gems, structures
from tests.core.test_codes import completed, read
from tests.samples import drawn, examples
from tests.schemas import validator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jsonschema import Draft202012Validator

    from gem_bundle.pipeline.document import Document
    from gem_bundle.semantics import Kind

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {"HOST": "h"}


@cache
def of_files() -> Draft202012Validator:
    """The schema of a file whose gems are the installed ones and those of the tests."""
    return validator(pipeline_schema(gems()))


def refusals(values: Any) -> list[str]:
    """What the schema has against a file."""
    return [f"{list(error.absolute_path)}: {error.message}" for error in of_files().iter_errors(values)]


def is_right(document: Document) -> bool:
    """Whether a check has no error against a file."""
    if document.values is None or document.diagnostics:
        return False
    loaded = load_values(
        document.values, document, Path("/data"), document.file, LoadOptions(environment=ENVIRONMENT)
    )
    return check_definition(loaded, gems()).ok


def test_the_schema_is_one() -> None:
    assert of_files().schema
    for entry in drawn(load_registry({}), 8):
        validator(json_schema(entry.load().options_type))


def test_every_reference_in_it_leads_somewhere() -> None:
    schema = of_files().schema
    pointers = set(re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(schema)))
    assert len(pointers) > 200
    for pointer in pointers:
        found = schema
        for step in pointer.split("/"):
            found = found[step]
        assert isinstance(found, dict)


# It takes what is right


def texts_of_tests() -> Iterator[str]:
    """The pipelines that stand in tests, complete and without placeholders."""
    for file in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "pipeline:" in node.value:
                yield node.value


def texts_of_documents() -> Iterator[str]:
    """The examples, and the pipelines of the README, the first without its mistake."""
    for file in sorted((ROOT / "examples").rglob("*.yaml")):
        yield file.read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for text in re.findall(r"```yaml\n(pipeline:.*?)```", readme, re.DOTALL):
        yield text.replace("colum:", "column:")


def texts_of_codes() -> Iterator[str]:
    """What keeps each rule, and what breaks those that are none of a check, completed to whole files."""
    for code in CODES.values():
        for text in (code.keeps, code.breaks):
            example = read(text)
            if example.pipeline:
                yield completed(example.pipeline)


@pytest.mark.parametrize(
    ("texts", "least"),
    [(texts_of_documents, 5), (texts_of_codes, 10), (texts_of_tests, 2)],
    ids=["documents", "codes", "tests"],
)
def test_what_a_check_takes_is_taken(texts: Any, least: int) -> None:
    right = [text for text in drawn(texts(), 60, about=texts.__name__) if is_right(parse(text, "p.yaml"))]

    assert len(right) >= least
    for text in right:
        assert refusals(parse(text, "p.yaml").values) == [], text


def test_the_example_of_every_gem_is_taken() -> None:
    for entry in load_registry({}):
        gem = entry.load()
        errors = validator(json_schema(gem.options_type)).iter_errors(gem.example)
        assert [error.message for error in errors] == [], entry.name


# A value of each form that a file can have, and forms that a validator may turn into another type.
VALUES = [
    *(None, True, False, 0, 1, 5, -1, 7.0, 0.5, 1e300, float("inf"), "", " ", "x", "a, b", "a b", "a.b.c"),
    *("5", " 5 ", "+5", "-1", "1_0", "5.0", "1.5", "1e3", "inf", "nan", "NaN", "512m"),
    *("true", "True", "YES", "off", "n", "0", "1"),
    *("10 minutes", "1 hour 30 minutes", "10s", "1000", "h:9092", "h:9092, i:9093", "mod:function"),
    *("2024-01-31", "2024-01-31T10:00:00Z", "a int, b string", "a > 1", "sum(a) as b", "data/x", "s3a://b/x"),
    *("append", "LEFT_OUTER", "failfast", "Permissive", "latest", "EARLIEST", "ssl", '{"t": {"0": 1}}'),
    *([], ["a"], ["a", "a"], ["h:9092"], [1], ["1"], [True], [None], [[1]], [{"a": 1}], [{"a": "x"}]),
    *({}, {"a": "b"}, {"a": 1}, {"a": True}, {"a": "1"}, {"a": None}, {"a": [1]}, {"a": ["0"]}, {"a": "int"}),
    *({"t": {"0": 1}}, {"t": {"0": "1"}}, {"t": {"0": True}}, {"t": {"0": "LATEST"}}, {"t": {"0": 2.0}}),
    *({"column": "a", "duration": "1 hour"}, {"column": 1, "gap": "5 minutes"}, {"a": "x", "b": ["y"]}),
]


def spellings(options: type[Options], name: str) -> list[str]:
    spark = options.spark_name(name)
    spelled = [name, spark, spark.lower(), spark.upper(), name.replace("_", ""), name.upper()]
    return [key for key in dict.fromkeys(spelled) if options.canonical(key) == name]


ENTRIES = [pytest.param(entry, id=f"{entry.kind}-{entry.name}") for entry in load_registry({})]


@pytest.mark.sample(25)
@pytest.mark.parametrize("entry", ENTRIES)
def test_no_value_of_an_option_that_a_check_takes_is_refused(entry: GemEntry) -> None:
    options = entry.load().options_type
    schema = validator(json_schema(options))
    example = dict(entry.load().example)
    taken = 0
    for number, name in enumerate(options.model_fields):
        keys = spellings(options, name)
        for value in drawn(VALUES, 6, about=f"{entry.kind} {entry.name} {name}"):
            key = keys[number % len(keys)]
            given = {k: v for k, v in example.items() if k != name} | {key: value}
            if options_are_right(entry, given):
                taken += 1
                assert [error.message for error in schema.iter_errors(given)] == [], (key, value)
        for key in keys:
            if name in example:
                given = {k: v for k, v in example.items() if k != name} | {key: example[name]}
                assert [error.message for error in schema.iter_errors(given)] == [], key
                # Of some options no value that is drawn is one.
                taken += options_are_right(entry, given)
    assert taken or len(options.model_fields) < 5


def options_are_right(entry: GemEntry, options: dict[str, Any]) -> bool:
    registry = Registry()
    registry.add(entry)
    section = next(section for section, kind in SECTIONS.items() if kind == entry.kind)
    inputs = [Input(name, None, name, (section, "x", "inputs", 0)) for name in ("a", "b")]
    if entry.kind == "source":
        inputs = []
    elif entry.kind == "transform":
        inputs = inputs[: max(1, entry.load().inputs[0])]  # type: ignore[attr-defined]
    node = Node("x", entry.kind, entry.name, options, tuple(inputs), (section, "x"))
    _, found = make_gem(node, registry, parse("", "p.yaml"), Path("/data"))
    return not any(diagnostic.is_error for diagnostic in found)


@settings(FUZZ, max_examples=examples(20))
@given(tree=structures())
def test_a_mutated_file_that_the_schema_refuses_is_refused_by_a_check(tree: Any) -> None:
    document = parse(yaml.safe_dump(tree, allow_unicode=True, sort_keys=False), "p.yaml")

    if document.values is not None and is_right(document):
        assert refusals(document.values) == []


LEAVES = SCALARS | st.sampled_from(VALUES)


@st.composite
def exchanged(draw: st.DrawFn) -> Any:
    """The pipeline with one of its values exchanged for another, anywhere."""
    tree = parse(PIPELINE, "p.yaml").values
    parent: Any = tree
    while True:
        keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
        key = draw(st.sampled_from(keys))
        if not isinstance(parent[key], dict | list) or not parent[key] or not draw(st.integers(0, 3)):
            break
        parent = parent[key]
    parent[key] = draw(LEAVES)
    return tree


@FUZZ
@given(tree=exchanged())
def test_a_file_with_another_value_is_not_refused_without_a_reason(tree: Any) -> None:
    document = parse(json.dumps(tree), "p.json")

    if document.values is not None and is_right(document):
        assert refusals(document.values) == []


# It refuses what is wrong


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("pipeline: clicks", "pipelin: clicks", "'pipelin'"),
        ("pipeline: clicks", "pipeline: Clicks!", "Clicks!"),
        ("version: 1.10", "version: one", "one"),
        ("type: string,", "type: text,", "text"),
        ("description: A host.", "descriptoin: A host.", "descriptoin"),
        ("spark.x: 8", "spark.x: [8]", "[8]"),
        ("gem: rate,", "gem: rat,", "rat"),
        ("gem: rate,", "gme: rate,", "gme"),
        ("rows_per_second: 5", "rows_per_secnod: 5", "rows_per_secnod"),
        ("rows_per_second: 5", "rows_per_second: five", "five"),
        ("rows_per_second: 5", "rows_per_second: 0", "0"),
        ("rows_per_second: 5", "rows_per_second: [5]", "[5]"),
        ("rows_per_second: 5", "ROWSPERSECOND: many", "many"),
        ("mode: batch}", "mode: batsh}", "batsh"),
        ("columns: {x: a + 1}", "columns: {x: [a]}", "['a']"),
        ("window: {column: x}", "window: {colum: x}", "colum"),
        ("input: clicks,", "input: clicks, inputs: [clicks],", "inputs"),
        ("input: clicks,", "", "input"),
        ("inputs: {l: split.good, r: pages}", "inputs: [pages]", "['pages']"),
        ("inputs: {l: split.good, r: pages}", "input: pages", "input"),
        ("{how: left,", "{how: 5,", "5"),
        ("allow_missing_columns: true", "allow_missing_columns: perhaps", "perhaps"),
        ("query: ", "qurey: ", "qurey"),
        ("processing_time: 10 seconds", "processing_tiem: 10 seconds", "processing_tiem"),
        ("processing_time: 10 seconds", "processing_time: 10 seconds, once: true", "once"),
        ("available_now: true", "available_now: false", "False"),
        ("available_now: true", "available_now: 1", "1"),
        ("output_mode: complete", "output_mode: all", "all"),
        ("input: asked,", "", "'input'"),
        ("  clicks:\n", "  9clicks:\n", "9clicks"),
        ('{topic: "${topic}"', '{topics: "${topic}"', "topics"),
        ("targets:\n", "x-targets:\n", "targets"),
    ],
)
def test_mistakes_are_refused(old: str, new: str, said: str) -> None:
    text = PIPELINE.replace("<<: *common, topic:", "topic:")
    assert old in text
    assert refusals(parse(text, "p.yaml").values) == []

    document = parse(text.replace(old, new, 1), "p.yaml")

    assert not is_right(document)
    assert said in " ".join(refusals(document.values))


def test_references_stand_for_anything() -> None:
    text = """
    pipeline: p
    parameters: {n: 5, yes: true, list: [a], map: {a: b}, word: append, node: {gem: rate}, t: {once: true}}
    mode: "${word}"
    spark: "${map}"
    sources: {one: "${node}", two: {gem: topic, options: "${map}"}}
    transforms: {three: {gem: "${word}", inputs: "${list}"}, four: {gem: union, inputs: [a, "${word}"]}}
    targets:
      five: {gem: console, input: "${word}", trigger: "${t}", output_mode: "${word}",
             options: {num_rows: "${n}", truncate: "a${n}"}}
    """
    assert refusals(parse(text, "p.yaml").values) == []


# What it tells an editor


def test_an_option_has_its_description_default_and_examples() -> None:
    schema = of_files().schema["$defs"]["sources"]["rate"]
    rows = schema["properties"]["rows_per_second"]
    assert rows["description"] == "Rows generated per second."
    assert rows["default"] == 1
    assert schema["examples"] == [dict(load_registry({}).get("source", "rate").load().example)]
    assert "title" not in json.dumps(schema)
    assert "gem_bundle" not in json.dumps(schema)


@pytest.mark.parametrize(("section", "kind"), SECTIONS.items())
def test_the_gems_of_each_kind_are_offered_with_what_they_do(section: str, kind: Kind) -> None:
    gem = of_files().schema["$defs"][kind]["properties"]["gem"]
    offered = next(choice for choice in gem["anyOf"] if "enum" in choice)
    assert offered["enum"] == gems().names(kind)
    assert all(offered["enumDescriptions"])
    assert set(of_files().schema["$defs"][section]) == set(offered["enum"])


def test_every_key_of_a_file_is_described() -> None:
    schema = of_files().schema
    parts = [schema, *(schema["$defs"][name] for name in ("source", "transform", "target", "trigger"))]
    for part in parts:
        assert part["description"]
        assert [name for name, key in part["properties"].items() if not key.get("description")] == []


# What other people's gems may declare


class ManyTypes(Options):
    """Types that the built-in gems don't use."""

    count: int = Field(description="How many.", multiple_of=5)
    code: str = Field("abc", description="A code.", pattern="^[a-c]+$", max_length=5)
    levels: set[int] = Field(set(), description="Levels.")
    pair: tuple[int, str] | None = Field(None, description="A pair.")
    choice: Literal[1, 2] = Field(1, description="One of two.")
    upper: Annotated[Literal["A", "B"], BeforeValidator(str.upper)] = Field("A", description="In any case.")
    even: Annotated[int, AfterValidator(lambda number: number)] = Field(2, description="Even.")
    free: Annotated[Any, PlainValidator(lambda value: value)] = Field(None, description="Anything.")
    late: float = Field(0.5, description="New.", since="4.1")


class ManySource(Source[ManyTypes]):
    """A source of somebody else."""


MANY = GemEntry("source", "many", ManySource, Origin("t", "t", "1"))


@pytest.mark.parametrize(
    "given",
    [
        {"count": 5},
        {"Count": 5, "CODE": "abc"},
        {"count": "10"},
        {"count": "${n}", "code": "${a_long_name}", "choice": "${n}", "upper": "${n}", "late": "${n}"},
        {"count": 5, "levels": ["${n}"]},
        {"count": 5, "levels": [1, 1, "2"], "pair": ["1", "x"], "upper": "b", "free": [{}]},
    ],
)
def test_other_types(given: dict[str, Any]) -> None:
    if "${" not in str(given):
        assert options_are_right(MANY, given)
    assert validator(json_schema(ManyTypes)).is_valid(given)


@pytest.mark.parametrize(
    "given",
    [{}, {"count": 3}, {"count": 5, "code": "x"}, {"count": 5, "choice": 3}, {"count": 5, "pair": [1]}],
)
def test_wrong_values_of_other_types(given: dict[str, Any]) -> None:
    assert not options_are_right(MANY, given)
    assert not validator(json_schema(ManyTypes)).is_valid(given)


def test_what_is_new_in_spark_says_so() -> None:
    late = json_schema(ManyTypes)["properties"]["late"]
    assert late["description"] == "New. Since Spark 4.1."


def test_a_gem_that_cannot_be_loaded_may_have_any_options() -> None:
    registry = Registry()
    registry.add(GemEntry("source", "lost", "no_such_module:Lost", Origin("t", "t", "1")))
    registry.add(MANY)
    registry.add(GemEntry("source", "many", "other:Many", Origin("u", "u", "1")))
    schema = validator(pipeline_schema(registry))
    for name in ("lost", "many"):
        values = {
            "pipeline": "p",
            "sources": {"a": {"gem": name, "options": {"x": 1}}},
            "targets": {"b": {"gem": "${sink}", "input": "a"}},
        }
        assert schema.is_valid(values)
