"""The graph: inputs that exist, an order, cycles, nodes that nobody uses."""

import random
from pathlib import Path

import pytest

from gem_bundle.check.stages.graph import check_graph
from gem_bundle.pipeline.document import Document
from gem_bundle.pipeline.model import Definition, Input, Node
from tests.core.checking import found, load, marked
from tests.counting import calls_of


def definition(nodes: dict[str, list[str]]) -> Definition:
    """A pipeline of which only the edges matter: each node's inputs."""
    return Definition(
        name="p",
        version="1",
        description="",
        mode="stream",
        folder=Path(),
        file="",
        nodes={
            name: Node(
                name,
                "target" if name.startswith("t") else ("transform" if inputs else "source"),
                "x",
                {},
                tuple(Input(i, None, i, ("nodes", name, "inputs", i)) for i in inputs),
                ("nodes", name),
            )
            for name, inputs in nodes.items()
        },
        spark={},
        checkpoints="",
        locator=Document(""),
        parameters={},
        values={},
        secrets=frozenset(),
    )


def order_of(nodes: dict[str, list[str]]) -> list[str]:
    order, diagnostics = check_graph(definition(nodes), ())
    assert diagnostics == []
    return order


def cycles_of(nodes: dict[str, list[str]]) -> list[str]:
    _, diagnostics = check_graph(definition(nodes), ())
    return [d.message for d in diagnostics if d.code == "GB102"]


def test_inputs_come_before_those_who_use_them_whatever_the_order_of_the_file() -> None:
    assert order_of({"t": ["c"], "c": ["b", "a"], "b": ["a"], "a": []}) == ["a", "b", "c", "t"]


def test_any_graph_without_cycles_has_an_order() -> None:
    generator = random.Random(7)
    for _ in range(50):
        names = [f"n{i}" for i in range(30)]
        nodes = {name: generator.sample(names[:i], min(i, 3)) for i, name in enumerate(names)}
        nodes["t"] = names
        shuffled = dict(generator.sample(list(nodes.items()), len(nodes)))
        order = order_of(shuffled)

        assert sorted(order) == sorted(nodes)
        for name, inputs in nodes.items():
            assert all(order.index(i) < order.index(name) for i in inputs)


@pytest.mark.parametrize(
    ("nodes", "cycle"),
    [
        ({"a": ["a"], "t": ["a"]}, "`a` ← `a`"),
        ({"a": ["b"], "b": ["a"], "t": ["a"]}, "`a` ← `b` ← `a`"),
        ({"a": ["b"], "b": ["c"], "c": ["a"], "t": ["a"]}, "`a` ← `b` ← `c` ← `a`"),
        # The shortest way round is told, from the first node of the file.
        ({"a": ["b", "c"], "b": ["c"], "c": ["a"], "t": ["a"]}, "`a` ← `c` ← `a`"),
        ({"b": ["a"], "a": ["s", "b"], "s": [], "t": ["b"]}, "`b` ← `a` ← `b`"),
    ],
)
def test_a_cycle_is_told_as_a_way_round(nodes: dict[str, list[str]], cycle: str) -> None:
    assert cycles_of(nodes) == [f"these nodes wait for each other: {cycle}"]


def test_nodes_that_wait_for_each_other_over_several_ways_are_one_cycle() -> None:
    nodes = {"y": ["z", "x"], "z": ["y"], "x": ["z"], "t": ["y"]}
    order, diagnostics = check_graph(definition(nodes), ())

    assert order == ["t"]
    assert [d.code for d in diagnostics] == ["GB102"]


def test_each_cycle_is_reported_and_the_rest_is_put_in_order() -> None:
    nodes = {
        "a": ["b"],
        "b": ["a"],
        "s": [],
        "c": ["s", "d"],
        "d": ["c", "a"],
        "e": ["s"],
        "t": ["e", "d"],
    }
    order, diagnostics = check_graph(definition(nodes), ())

    assert order == ["s", "e", "t"]
    assert [d.node for d in diagnostics] == ["a", "c"]


def test_a_cycle_is_placed_at_the_input_that_closes_it() -> None:
    text, (place,) = marked(
        "pipeline: p\nsources: {s: {gem: ticks}}\n"
        "transforms:\n"
        "  a: {gem: mix, inputs: [s, ▶b]}\n"
        "  b: {gem: shape, input: a}\n"
        "targets: {t: {gem: sink, input: b}}"
    )
    pipeline = load(text).definition
    assert pipeline is not None
    (diagnostic,) = check_graph(pipeline, ())[1]

    assert (diagnostic.line, diagnostic.column) == place


def deep_graphs(nodes: int) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """As many nodes in a row, the last one first; and in a ring."""
    deep: dict[str, list[str]] = {"n0": []}
    deep |= {f"n{i}": [f"n{i - 1}"] for i in range(1, nodes)}
    deep["t"] = [f"n{nodes - 1}"]
    return dict(reversed(deep.items())), {**deep, "n0": [f"n{nodes - 1}"]}


def test_a_graph_may_be_deeper_than_pythons_stack() -> None:
    backwards, ring = deep_graphs(3_000)

    assert len(order_of(backwards)) == 3_001
    assert len(cycles_of(ring)) == 1
    assert calls_of(lambda: order_of(backwards)) < 3_000 * 60
    assert calls_of(lambda: cycles_of(ring)) < 3_000 * 60


# Inputs, names, what nobody uses


def diagnose(text: str) -> tuple[list[tuple[str, int, int]], list[str], list[tuple[int, int]]]:
    """What is found, the hints, and the marked places."""
    clean, places = marked(text)
    loaded = load(clean)
    assert loaded.definition is not None
    _, loaded.diagnostics = check_graph(loaded.definition, loaded.broken)
    return found(loaded), [d.hint for d in loaded.diagnostics], places


def test_an_unknown_input() -> None:
    codes, hints, (first, second) = diagnose(
        "pipeline: p\nsources: {clicks: {gem: x}}\n"
        "transforms: {a: {gem: y, inputs: [clicks, ▶pages.good]}}\n"
        "targets: {t: {gem: z, input: a}, u: {gem: z, input: ▶clikcs}}"
    )

    assert codes == [("GB101", *first), ("GB101", *second)]
    assert hints == ["Known nodes: `clicks`.", "Did you mean `clicks`?"]


def test_a_target_has_no_output() -> None:
    codes, hints, (place,) = diagnose(
        "pipeline: p\nsources: {a: {gem: x}}\ntargets: {t: {gem: z, input: a}, u: {gem: z, input: ▶t}}"
    )

    assert codes == [("GB101", *place)]
    assert hints == ["Read from the target's input instead."]


def test_two_inputs_of_one_name() -> None:
    codes, hints, places = diagnose(
        "pipeline: p\nsources: {a: {gem: x}, b: {gem: x}}\n"
        "transforms: {c: {gem: y, inputs: [a, b.x, ▶a, ▶b.x]}}\n"
        "targets: {t: {gem: z, input: c}}"
    )

    assert codes == [("GB104", *place) for place in places]
    assert hints == [
        "Name them: `inputs: {left: a, right: a}`.",
        "Name them: `inputs: {left: b.x, right: b.x}`.",
    ]


def test_one_input_twice_under_two_names_is_fine() -> None:
    codes, _, _ = diagnose(
        "pipeline: p\nsources: {a: {gem: x}}\n"
        "transforms: {c: {gem: y, inputs: {l: a, r: a}}}\ntargets: {t: {gem: z, input: c}}"
    )

    assert codes == []


def test_a_pipeline_without_a_target() -> None:
    for targets in ("", "▶targets:\n", "▶targets: {}\n"):
        codes, _, places = diagnose(f"pipeline: p\n{targets}sources: {{a: {{gem: x}}}}\n")

        assert codes == [("GB107", *(places or [(1, 1)])[0])]


def test_what_nobody_uses() -> None:
    text = (
        "pipeline: p\n"
        "sources:\n  a: {gem: x}\n  ▶lonely: {gem: x}\n  ▶indirect: {gem: x}\n"
        "transforms:\n  b: {gem: y, input: a}\n  ▶dead: {gem: y, inputs: [b, indirect]}\n"
        "targets:\n  t: {gem: z, input: b}\n"
    )
    clean, places = marked(text)
    pipeline = load(clean).definition
    assert pipeline is not None
    _, diagnostics = check_graph(pipeline, ())

    assert [(d.code, d.severity, d.line, d.column) for d in diagnostics] == [
        ("GB103", "warning", *place) for place in places
    ]


def test_what_a_misspelt_input_meant_is_not_called_unused() -> None:
    codes, _, places = diagnose(
        "pipeline: p\nsources: {clicks: {gem: x}, ▶other: {gem: x}}\ntargets: {t: {gem: z, input: ▶clikcs}}"
    )

    assert codes == [("GB101", *places[1]), ("GB103", *places[0])]


def test_of_a_file_with_unreadable_nodes_nobody_says_what_is_missing_or_unused() -> None:
    codes, _, _ = diagnose(
        "pipeline: p\nsources: {a: {gem: x}, b: {}}\ntransforms: {c: {gem: y, input: b}, d: {}}"
    )

    assert codes == []
