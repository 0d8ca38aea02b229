"""The generator: reproducible, without options that aren't valid, and everything comes up."""

from collections import Counter
from pathlib import Path

import pytest

from gem_bundle.check.stages.gems import make_gems
from gem_bundle.pipeline.document import Document
from gem_bundle.pipeline.loader import LoadOptions, load_values
from gem_bundle.plugins import load_registry
from tests import samples
from tests.differential.generator import MAX_DEPTH, Drawn, draw
from tests.differential.mistakes import MISTAKES
from tests.differential.shrink import shrink
from tests.differential.tally import behind

COUNT = 1500


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


def test_every_transform_join_mode_and_mistake_comes_up(drawn: list[Drawn]) -> None:
    shapes = Counter(shape for pipeline in drawn for shape in pipeline.shapes.values())
    gems = {shape.split()[0] for shape in shapes}
    registry = load_registry()
    # Of code of the pipeline's own nothing can be drawn; messages in Avro need a jar that the session, which
    # the drawn pipelines are compared in, doesn't have; the rows that are drawn are no envelopes of Debezium; no service answers them.
    left = {"python", "stateful", "from_avro", "to_avro", "from_debezium", "rest_enrich"}
    assert set(registry.names("transform")) - gems == left
    for how in ("inner", "left", "right", "full", "left_semi", "left_anti"):
        for inputs in ("stream-stream", "stream-static", "static-stream"):
            assert shapes[f"join {how} {inputs}"], (how, inputs)
    for mode in ("append", "update", "complete"):
        assert shapes[f"target {mode}"] > 100
    assert {pipeline.mistake for pipeline in drawn} == {None, *MISTAKES}
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
