"""One stable name for each reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gem_bundle.check import check_definition
from gem_bundle.gem import Facts, Source, Target, Transform
from gem_bundle.options import NoOptions
from gem_bundle.pipeline.document import parse
from gem_bundle.pipeline.loader import LoadOptions, load_values
from gem_bundle.plugins import GemEntry, Origin, Registry
from gem_bundle.run.frames import Frames


class In(Source[NoOptions]):
    """A source."""


class Combine(Transform[NoOptions]):
    """Any number of inputs."""

    inputs = (1, None)

    def apply(self, *inputs: Any) -> Any:
        return inputs

    def infer(self, *inputs: Facts) -> Facts:
        return Facts(streaming=True)


class Out(Target[NoOptions]):
    """A target."""


def registry() -> Registry:
    found = Registry()
    origin = Origin("test", "test", "1")
    found.add(GemEntry("source", "in", In, origin))
    found.add(GemEntry("transform", "combine", Combine, origin))
    found.add(GemEntry("target", "out", Out, origin))
    return found


def readers(transforms: str, last: str, sources: str = "s: {gem: in}") -> list[str]:
    """The names of the readers behind a node, in the order of its inputs."""
    text = (
        f"pipeline: p\nsources: {{{sources}}}\ntransforms: {{{transforms}}}\n"
        f"targets: {{t: {{gem: out, input: {last}}}}}"
    )
    document = parse(text, "p.yaml")
    assert not document.diagnostics, document.diagnostics
    loaded = load_values(document.values, document, Path.cwd(), "p.yaml", LoadOptions())
    checked = check_definition(loaded, registry())
    assert checked.plan is not None, checked.diagnostics
    frames = Frames(checked.plan, spark=None, read=lambda _, name: name)  # type: ignore[arg-type, return-value]
    return flat(frames.of(last))


def flat(built: Any) -> list[str]:
    return [built] if isinstance(built, str) else [name for part in built for name in flat(part)]


def test_a_single_path_has_the_name_of_its_source() -> None:
    assert readers("a: {gem: combine, input: s}", "a") == ["s"]


def test_a_second_path_gets_a_name_of_its_own() -> None:
    assert readers("j: {gem: combine, inputs: {left: s, right: s}}", "j") == ["s", "s__j_right"]
    forked = "a: {gem: combine, input: s}, b: {gem: combine, input: s}, j: {gem: combine, inputs: [a, b]}"
    assert readers(forked, "j") == ["s", "s__j_2"]


def test_transforms_on_the_way_do_not_change_a_name() -> None:
    before = "a: {gem: combine, input: s}, j: {gem: combine, inputs: [a, s]}"
    between = (
        "a: {gem: combine, input: s}, c: {gem: combine, input: s}, d: {gem: combine, input: c}, "
        "j: {gem: combine, inputs: [a, d]}"
    )
    assert readers(before, "j") == readers(between, "j") == ["s", "s__j_2"]


def test_a_source_added_beside_others_leaves_their_names() -> None:
    sources = "s: {gem: in}, u: {gem: in}"
    assert readers("j: {gem: combine, inputs: [u, s]}", "j", sources) == ["u", "s"]


def test_four_paths_have_four_names() -> None:
    transforms = (
        "a: {gem: combine, inputs: {x: s, y: s}}, b: {gem: combine, inputs: {x: a, y: a}}, "
        "c: {gem: combine, input: b}"
    )
    found = readers(transforms, "c")
    assert found == ["s", "s__a_y", "s__b_y", "s__b_y__a_y"]
    assert len(set(found)) == 4


def test_static_sources_are_read_once() -> None:
    sources = "s: {gem: in}, k: {gem: in, mode: batch}"
    transforms = "a: {gem: combine, inputs: [s, k]}, b: {gem: combine, inputs: {x: a, y: k}}"
    assert readers(transforms, "b", sources) == ["s", "k", "k"]


def test_a_long_chain_is_no_deep_recursion() -> None:
    links = ", ".join(f"n{i}: {{gem: combine, input: {f'n{i - 1}' if i else 's'}}}" for i in range(1900))
    text = f"pipeline: p\nsources: {{s: {{gem: in}}}}\ntransforms: {{{links}}}\ntargets: {{t: {{gem: out, input: n1899}}}}"
    document = parse(text, "p.yaml")
    loaded = load_values(document.values, document, Path.cwd(), "p.yaml", LoadOptions())
    plan = check_definition(loaded, registry()).plan
    assert plan is not None
    seen: list[str] = []

    def read(_: Any, name: str) -> Any:
        seen.append(name)
        return name

    Frames(plan, spark=None, read=read).of("n1899")  # type: ignore[arg-type]
    assert seen == ["s"]
