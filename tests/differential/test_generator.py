"""The generator: reproducible, without options that aren't valid, and everything comes up."""

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from gem_bundle.check.stages.gems import make_gems
from gem_bundle.pipeline.document import Document
from gem_bundle.pipeline.loader import LoadOptions, load_values
from gem_bundle.plugins import load_registry
from tests import samples
from tests.differential.edits.draw import Recorded
from tests.differential.edits.drawn import drawn_edits
from tests.differential.further import rejects
from tests.differential.generator import MAX_DEPTH, UNDRAWN, WRONG_CHANGES, Drawn, draw
from tests.differential.mistakes import FURTHER_MISTAKES, MISTAKES
from tests.differential.shrink import shrink
from tests.differential.tally import behind

COUNT = 1500
EDITED = "ea90b16e70922e6bb4fa5b114e73cbbe86b1465d2b1c32b533a86320d003129c"


@pytest.fixture(scope="module")
def drawn() -> list[Drawn]:
    return [draw(f"generator:{number}") for number in range(COUNT)]


def test_a_seed_gives_the_same_pipeline_again(drawn: list[Drawn]) -> None:
    assert [draw(pipeline.seed) for pipeline in drawn[:50]] == drawn[:50]
    assert len({str(pipeline.values) for pipeline in drawn}) > 0.99 * COUNT


def test_all_options_are_valid(drawn: list[Drawn]) -> None:
    registry = load_registry()
    wrong = []
    some = samples.drawn(drawn, 300)
    for pipeline in some:
        loaded = load_values(
            pipeline.values, Document(pipeline.seed), Path("/drawn"), "", LoadOptions(environment={})
        )
        assert loaded.definition is not None
        assert loaded.diagnostics == []
        wrong += make_gems(loaded.definition, registry)[1]
    # `+` and the like at the end of an expression are mistakes that an option's type may find.
    assert len(wrong) <= 3 + 0.01 * len(some), wrong[:5]


def test_every_gem_is_drawn_or_it_is_said_why_not(drawn: list[Drawn]) -> None:
    nodes = [
        (section.removesuffix("s"), node["gem"])
        for pipeline in drawn
        for section in ("sources", "transforms", "targets")
        for node in pipeline.values.get(section, {}).values()
    ]
    registry = load_registry()
    known = {(kind, name) for kind in ("source", "transform", "target") for name in registry.names(kind)}
    assert known - set(nodes) == set(UNDRAWN)
    assert all(UNDRAWN.values())


def test_rows_that_are_rejected_are_read_and_written_beside_the_others(drawn: list[Drawn]) -> None:
    of = {section: Counter[str]() for section in ("transforms", "targets")}
    for pipeline in drawn:
        nodes = {
            name: node
            for section in pipeline.values.values()
            if isinstance(section, dict)
            for name, node in section.items()
        }
        for section, counted in of.items():
            for node in pipeline.values.get(section, {}).values():
                name, _, output = node.get("input", "").partition(".")
                if output == "rejected":
                    assert rejects(nodes[name])
                    counted[nodes[name]["gem"]] += 1
    rejecting = {
        "expect",
        "file",
        "foreach",
        "from_avro",
        "from_debezium",
        "from_json",
        "select",
        "with_columns",
    }
    assert rejecting <= set(of["targets"])
    assert len(of["transforms"]) > 3


def test_options_of_new_gems_come_up(drawn: list[Drawn]) -> None:
    transforms = [node for pipeline in drawn for node in pipeline.values.get("transforms", {}).values()]
    stateful = [node["options"] for node in transforms if node["gem"] == "stateful"]
    for option, values in {
        "time": {"none", "processing", "event"},
        "output_mode": {"append", "update"},
        "form": {"rows", "pandas"},
    }.items():
        defaults = {"time": "none", "output_mode": "append", "form": "rows"}
        assert {options.get(option, defaults[option]) for options in stateful} == values
    assert any("initial_state" in options for options in stateful)
    assert any("event_time" in options for options in stateful)
    targets = [node for pipeline in drawn for node in pipeline.values["targets"].values()]
    delta = [node["options"] for node in targets if node["gem"] == "delta"]
    assert all(any(option in options for options in delta) for option in ("merge", "history"))
    assert any("upsert" in node["options"] for node in targets if node["gem"] == "jdbc")


def test_what_edits_are_drawn_of_stays_as_it_is() -> None:
    """What became of edits is kept by the text of their pipelines, and is expensive to find out again."""
    drawn = [Recorded(f"20261125:{number}").drawn() for number in range(100)]
    text = json.dumps([[pipeline.values, pipeline.mistake, pipeline.shapes] for pipeline in drawn])
    assert hashlib.sha256(text.encode()).hexdigest() == EDITED


def test_edits_are_drawn_of_pipelines_that_keep_state_as_often_as_is_asked() -> None:
    registry, found = load_registry(), []
    for number in range(60):
        for edit in drawn_edits(f"20261125:{number}", registry, most=1, states=2):
            operators = [o for facts in edit.old.facts.values() for o in facts.all_operators()]
            found.append(len({operator.node for operator in operators if operator.stateful}))
    assert set(found) == {2}


def test_several_edits_are_made_as_one() -> None:
    registry = load_registry()
    drawn = [e for n in range(8) for e in drawn_edits(f"20261125:{n}", registry, most=2, at_once=2)]
    assert drawn
    assert all(", " in each.edit.kind and each.after != each.before for each in drawn)


def test_every_join_mode_and_mistake_comes_up(drawn: list[Drawn]) -> None:
    shapes = Counter(shape for pipeline in drawn for shape in pipeline.shapes.values())
    for how in ("inner", "left", "right", "full", "left_semi", "left_anti"):
        for inputs in ("stream-stream", "stream-static", "static-stream"):
            assert shapes[f"join {how} {inputs}"], (how, inputs)
    for mode in ("append", "update", "complete"):
        assert shapes[f"target {mode}"] > 100
    assert {pipeline.mistake for pipeline in drawn} == {None, WRONG_CHANGES, *MISTAKES, *FURTHER_MISTAKES}
    mistaken = sum(pipeline.mistake is not None for pipeline in drawn)
    assert 0.1 < mistaken / COUNT < 0.25


def test_pipelines_are_deep_and_have_several_targets(drawn: list[Drawn]) -> None:
    sizes = Counter(
        sum(name in pipeline.values.get("transforms", {}) for name in behind(pipeline, target))
        for pipeline in drawn
        for target in pipeline.values["targets"]
    )
    assert sum(count for size, count in sizes.items() if size >= 5) > 200
    assert max(sizes) >= MAX_DEPTH
    assert sum(len(pipeline.values["targets"]) > 1 for pipeline in drawn) > 0.3 * COUNT


def test_shrinking_keeps_what_matters_and_drops_the_rest(drawn: list[Drawn]) -> None:
    def sorts(values: dict[str, object]) -> bool:
        return "'gem': 'sort'" in str(values)

    # What no target reads goes with the first target that is left out.
    read = [
        pipeline
        for pipeline in drawn
        if any(
            pipeline.values["transforms"][name]["gem"] == "sort"
            for target in pipeline.values["targets"]
            for name in behind(pipeline, target)
            if name in pipeline.values.get("transforms", {})
        )
    ]
    large = max(read, key=lambda p: len(str(p.values)))
    small = shrink(large.values, sorts)
    assert [node["gem"] for node in small["transforms"].values()] == ["sort"]
    assert len(small["sources"]) == len(small["targets"]) == 1
    (target,) = small["targets"].values()
    assert target["gem"] == "noop"
