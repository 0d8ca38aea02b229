"""Every option of every built-in gem that takes a schema, types or an expression refuses a type that no Spark has.

The options are found by their types, so that a new one is asked too; what a gem needs beside one stands here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

import pytest
from pydantic import BaseModel

from gem_bundle.check.checker import check_file
from gem_bundle.describe import type_in_words
from gem_bundle.plugins import load_registry
from gem_bundle.semantics import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRONG = "bigintt"
EXPRESSION = f"cast(id as {WRONG})"
AVRO = json.dumps({"type": "record", "name": "R", "fields": [{"name": "n", "type": WRONG}]})
INPUT = {
    "gem": "rows",
    "options": {"rows": [], "schema": "id int, text string, value binary, at timestamp, page string"},
}
# What is given in place of the gem's example, and what stands beside an option: "=" is where the wrong type goes.
GIVEN: dict[str, dict[str, Any]] = {
    "generate.columns": {"columns": {"id": {"sequence": {}}, "x": "="}, "rows": 10},
    "aggregate.session.column": {"session": {"column": "=", "gap": "5 minutes"}, "aggregates": {"n": "count(*)"}},
    "aggregate.session.gap": {"session": {"column": "at", "gap": "="}, "aggregates": {"n": "count(*)"}},
    "aggregate.pivot.column": {"pivot": {"column": "=", "values": [1]}, "aggregates": {"n": "count(*)"}},
    "bulk_columns.expression": {"types": ["string"], "expression": f"cast({{column}} as {WRONG})"},
    "join.condition": {"condition": f"a.id = cast(b.id as {WRONG})"},
    "lookup.range.value": {
        "on": ["page"], "columns": ["text"], "range": {"value": "=", "start": "id", "end": "id"}
    },
    "delta.history.sequence_by": {"path": "x", "history": {"keys": ["id"], "sequence_by": "="}},
    "delta.history.delete_when": {"path": "x", "history": {"keys": ["id"], "sequence_by": "at", "delete_when": "="}},
    **{
        f"{gem}.merge.{option}": {**given, "merge": {"on": ["id"], **merge}}
        for gem, given in (("delta", {"path": "x"}), ("table", {"table": "x", "format": "iceberg"}))
        for option, merge in (
            ("on", {"on": f"target.id = source.id and target.n = cast(source.id as {WRONG})"}),
            ("sequence_by", {"sequence_by": "="}),
            ("delete_when", {"delete_when": "="}),
            ("update", {"update": {"id": "="}}),
            ("insert", {"insert": {"id": "="}}),
            ("unmatched_by_source.when", {"unmatched_by_source": {"when": "="}}),
            ("unmatched_by_source.update", {"unmatched_by_source": {"update": {"id": "="}}}),
        )
    },
}  # fmt: skip


def fields(model: type[BaseModel], way: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The options of a model, and those of the models in them, each with the way to it."""
    for name, field in model.model_fields.items():
        here = (*way, field.alias or name)
        yield here, field
        for inner in models(field.annotation):
            yield from fields(inner, here)


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models(part)


def wrong_value(way: tuple[str, ...], field: Any) -> str | None:
    """What is wrong in an option only for its type; None for an option that holds none."""
    words = type_in_words(field.annotation, field.metadata)
    if "SQL expression" in words:
        return EXPRESSION
    if words in {"schema", "types of columns"}:
        return f"id {WRONG}"
    return (
        AVRO
        if way[-1].endswith("schema") and words.startswith("text") and way != ("staging_schema",)
        else None
    )


def options() -> Iterator[tuple[Kind, str, tuple[str, ...], str]]:
    registry = load_registry({})
    for kind in get_args(Kind):
        for name in registry.names(kind):
            for way, field in fields(registry.get(kind, name).load().options_type):
                value = wrong_value(way, field)
                if value is not None:
                    yield kind, name, way, value


ALL = list(options())


def written(gem: Any, name: str, way: tuple[str, ...], value: str) -> dict[str, Any]:
    """Options of a gem with a wrong value at the end of a way, all others as in its example."""
    given = GIVEN.get(".".join((name, *way)))
    if given is not None:
        return filled(given, value)
    found = json.loads(json.dumps(dict(gem.example)))
    at = found
    for step in way[:-1]:
        inner = at.setdefault(step, {})
        at = inner[0] if isinstance(inner, list) else inner
    before = at.get(way[-1])
    in_place: Any = value
    if isinstance(before, dict) and value == EXPRESSION:
        in_place = {next(iter(before)): value}
    elif isinstance(before, list):
        in_place = [value]
    at[way[-1]] = in_place
    return found


def filled(given: Any, value: str) -> Any:
    if isinstance(given, Mapping):
        return {key: filled(inner, value) for key, inner in given.items()}
    return value if given == "=" else given


def test_options_of_all_kinds_are_found() -> None:
    assert len(ALL) > 60
    assert {value for *_, value in ALL} == {AVRO, EXPRESSION, f"id {WRONG}"}
    assert GIVEN.keys() - {".".join((name, *way)) for _, name, way, _ in ALL} == set()


@pytest.mark.parametrize(
    ("kind", "name", "way", "value"),
    ALL,
    ids=[f"{kind}-{name}-{'.'.join(way)}" for kind, name, way, _ in ALL],
)
def test_a_type_that_no_spark_has_is_an_error_at_its_place(
    tmp_path: Path, kind: Kind, name: str, way: tuple[str, ...], value: str
) -> None:
    gem: Any = load_registry({}).get(kind, name).load()
    node: dict[str, Any] = {"gem": name, "options": written(gem, name, way, value)}
    pipeline: dict[str, Any] = {"pipeline": "p", "mode": "batch", "sources": {"a": INPUT, "b": INPUT}}
    pipeline["targets"] = {"t": {"gem": "noop", "input": "x"}}
    if kind == "source":
        pipeline["sources"] = {"x": node}
    elif kind == "target":
        pipeline["targets"] = {"x": {**node, "input": "a"}}
    else:
        inputs = {"inputs": ["a", "b"]} if gem.inputs[0] > 1 else {"input": "a"}
        pipeline["transforms"] = {"x": node | inputs}
    (tmp_path / "p.yaml").write_text(json.dumps(pipeline, indent=1))
    lines = (tmp_path / "p.yaml").read_text().splitlines()
    found = [d for d in check_file(tmp_path / "p.yaml").diagnostics if d.is_error]
    said = [str(d) for d in found]
    assert [d for d in found if WRONG in d.message and WRONG in lines[d.line - 1][d.column - 1 :]], "\n".join(
        said
    )
