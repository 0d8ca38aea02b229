"""Whatever is in a pipeline file, a check ends in diagnostics."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gem_bundle.check.checker import Checked, check_file
from gem_bundle.pipeline.loader import LoadOptions
from gem_bundle.pipeline.secrets import SecretStore
from gem_bundle.plugins import Registry, load_registry
from tests.core.checking import GEMS
from tests.core.checking import registry as with_test_gems
from tests.core.hostile import verify
from tests.samples import examples

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PIPELINE = """\
x-common: &common {brokers: ["${host}:9092"], spark_options: {a: b}}
pipeline: clicks
version: 1.10
parameters:
  topic: clicks
  host: {type: string, default: "${env:HOST}", description: A host.}
  sizes: [1, 2]
profiles:
  prod: {topic: "c-${env:HOST}", sizes: []}
spark: {spark.x: 8, spark.y: "${secret:a/b}"}
sources:
  clicks:
    gem: topic
    options: {<<: *common, topic: "${topic}", limit: 5, every: 1 minute, password: "${secret:a/b}"}
  ticks: {gem: rate, options: {rows_per_second: 5}}
  pages: {gem: pages, mode: batch}
  files: {gem: file, mode: batch, options: {format: csv, path: data, schema: "a int, b string"}}
transforms:
  shaped: {gem: shape, input: clicks, options: {columns: {x: a + 1}, window: {column: x}}}
  timed: {gem: watermark, input: ticks, options: {column: timestamp, delay: 10 minutes}}
  counts:
    gem: aggregate
    input: timed
    options:
      window: {column: timestamp, duration: 1 minute}
      group_by: [value % 7 as k]
      aggregates: {n: count(*)}
  split: {gem: split, input: shaped}
  joined: {gem: join, inputs: {l: split.good, r: pages}, options: {how: left, condition: l.a = r.a}}
  all: {gem: union, inputs: [joined, split.bad], options: {allow_missing_columns: true}}
  asked: {gem: sql, inputs: [all, files], options: {query: "select * from `all` join files using (a)"}}
targets:
  log: {gem: log, input: asked, trigger: {processing_time: 10 seconds}}
  table: {gem: sink, input: counts, output_mode: update, trigger: {available_now: true}} # gem-bundle: ignore GB351
  # gem-bundle: ignore GB331 for a look only
  screen: {gem: console, input: counts, output_mode: complete, options: {num_rows: 5}}
"""


@cache
def gems() -> Registry:
    """The installed gems and those of the tests."""
    installed = load_registry({})
    for kind, name in GEMS:
        if not installed.has(kind, name):  # type: ignore[arg-type]
            installed.add(with_test_gems().get(kind, name))  # type: ignore[arg-type]
    return installed


def check(folder: Path, text: bytes, *, run: bool = False) -> Checked:
    """A check that must end, and whose diagnostics must be whole."""
    file = folder / "p.yaml"
    file.write_bytes(text)
    options = LoadOptions(
        environment={"HOST": "h"},
        profile="prod" if run else None,
        secrets=SecretStore({"GEM_BUNDLE_SECRET_A_B": "hunter2-is-secret"}) if run else None,
    )
    checked = check_file(file, options, gems())
    verify(checked, text)
    assert "hunter2" not in "".join(map(str, checked.diagnostics))
    return checked


FUZZ = settings(
    max_examples=examples(50),
    suppress_health_check=[HealthCheck.too_slow],
)


def test_the_pipeline_itself_is_right(tmp_path: Path) -> None:
    for run in (False, True):
        checked = check(tmp_path, PIPELINE.encode(), run=run)

        assert [str(d) for d in checked.diagnostics] == []


BYTES = PIPELINE.encode()
POSITIONS = st.integers(0, len(BYTES))
ODD = st.sampled_from(
    b"\x00|\t|\xff|&a |*common|<<: |${|}|[|- |: |!x |\n|{|'|\"|>|%|---\n|#|? |\xef\xbb\xbf|\r|1e999|.nan|~"
    b"|\xe2\x80\xa8|\xc2\x85|$${|${env:X}|${clicks}|${secret:a/b}|".split(b"|")
)
EDITS = st.lists(
    st.tuples(POSITIONS, st.integers(0, 40), st.one_of(ODD, st.binary(max_size=8), st.just(b""))),
    min_size=1,
    max_size=6,
)


@FUZZ
@given(edits=EDITS, run=st.booleans())
def test_bytes_are_changed(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[int, int, bytes]], run: bool
) -> None:
    text = BYTES
    for position, length, replacement in edits:
        text = text[:position] + replacement + text[position + length :]

    check(_folder(tmp_path_factory), text, run=run)


@FUZZ
@given(start=POSITIONS, end=POSITIONS, times=st.integers(0, 50), at=POSITIONS)
def test_pieces_are_moved_and_repeated(
    tmp_path_factory: pytest.TempPathFactory, start: int, end: int, times: int, at: int
) -> None:
    piece = BYTES[min(start, end) : max(start, end)]

    check(_folder(tmp_path_factory), BYTES[:at] + piece * times + BYTES[at:])


# Words of the file in places where they don't belong, and values that belong nowhere.
WORDS = sorted(set(PIPELINE.replace(":", " ").replace(",", " ").split()))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**30),
    st.floats(),
    st.sampled_from(WORDS),
    st.sampled_from(["${topic}", "${nope}", "${secret:a/b}", "${env:NOPE}", "x${sizes}", "$${x}", "${", ""]),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=8,
)


@st.composite
def structures(draw: st.DrawFn) -> Any:
    """The pipeline with some of its values replaced, removed, renamed or nested."""
    tree = deepcopy(yaml.safe_load(PIPELINE))
    for _ in range(draw(st.integers(1, 5))):
        parent, key = tree, draw(st.sampled_from(sorted(tree) or [""]))
        while isinstance(parent.get(key), dict) and parent[key] and draw(st.integers(0, 4)):
            parent = parent[key]
            key = draw(st.sampled_from(sorted(map(str, parent))))
        what = draw(st.sampled_from(["replace", "remove", "rename", "nest", "copy"]))
        if what == "replace":
            parent[key] = draw(VALUES)
        elif what == "remove":
            parent.pop(key, None)
        elif what == "rename":
            parent[draw(st.sampled_from(WORDS))] = parent.pop(key, None)
        elif what == "nest":
            parent[key] = draw(st.sampled_from([[parent.get(key)], {"x": parent.get(key)}]))
        else:
            tree[draw(st.sampled_from(sorted(tree) or ["x"]))] = deepcopy(parent.get(key))
    return tree


@FUZZ
@given(tree=structures(), run=st.booleans())
def test_structures_are_changed(tmp_path_factory: pytest.TempPathFactory, tree: Any, run: bool) -> None:
    text = yaml.safe_dump(tree, allow_unicode=True, sort_keys=False)

    check(_folder(tmp_path_factory), text.encode(), run=run)


@FUZZ
@given(value=VALUES)
def test_any_value_is_a_file(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    check(_folder(tmp_path_factory), yaml.safe_dump(value, allow_unicode=True).encode())


@FUZZ
@given(text=st.binary(max_size=200))
def test_any_bytes_are_a_file(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    check(_folder(tmp_path_factory), text)


_FOLDERS: list[Path] = []


def _folder(factory: pytest.TempPathFactory) -> Path:
    """One folder for all examples: making one for each takes longer than the check."""
    if not _FOLDERS:
        _FOLDERS.append(factory.mktemp("fuzz"))
    return _FOLDERS[0]
