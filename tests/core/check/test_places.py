"""Where a pipeline reads, writes and keeps its checkpoints: what may not be one place, and where it is said."""

from collections.abc import Mapping
from typing import Literal

import pytest

from gem_bundle import Facts, Field, Options, Source, Target, TargetSemantics
from gem_bundle.check.stages.areas import areas_of
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.schema import columns_of
from gem_bundle.types import DataPath
from tests.core.checking import check, found, marked


class PlaceOptions(Options):
    """A folder, a table or a topic."""

    path: DataPath | None = Field(None, description="A folder.", spark="thePath")
    table: str | None = Field(None, description="A table.")
    topic: str | None = Field(None, description="A topic.")
    below: bool = Field(False, description="Whether folders below are read too.")

    def places(self) -> dict[str, list[str]]:
        """What is given."""
        found = {}
        if self.path is not None:
            found["path"] = [self.path + ("/**" if self.below else "")]
        if self.table is not None:
            found["table"] = [f"table:{self.table}"]
        if self.topic is not None:
            found["topic"] = [f"kafka://{broker}:9092/{self.topic}" for broker in ("a", "b")]
        return found


class InSource(Source[PlaceOptions]):
    """Reads."""

    def places(self) -> dict[str, list[str]]:
        return self.options.places()


class OutTarget(Target[PlaceOptions]):
    """Writes as into a topic."""

    semantics = TargetSemantics(delivery="exactly_once")
    shared: Literal["fine", "conflicts", "loses_rows"] = "fine"

    def places(self) -> dict[str, list[str]]:
        return self.options.places()


class TableTarget(OutTarget):
    """Writes as into a table."""

    semantics = TargetSemantics(delivery="exactly_once", shared="conflicts")


class StrictTarget(TableTarget):
    """Writes into a table that takes the columns it has, and maybe others."""

    def columns_taken(self, settings: Mapping[str, str]) -> Literal["any", "new", "same"]:
        if settings.get("spark.takes.all") == "true":
            return "any"
        return "new" if self.options.topic == "new" else "same"


class FolderTarget(OutTarget):
    """Writes as into a folder with a log."""

    semantics = TargetSemantics(delivery="exactly_once", shared="loses_rows")


class BrokenTarget(OutTarget):
    """Doesn't know where it writes."""

    def places(self) -> dict[str, list[str]]:
        raise RuntimeError("no idea")


GEMS = {
    "source_in": InSource,
    "target_out": OutTarget,
    "target_table": TableTarget,
    "target_strict": StrictTarget,
    "target_folder": FolderTarget,
    "target_broken": BrokenTarget,
}


def diagnostics(text: str) -> list[Diagnostic]:
    """What is said, in the order of the file, after its places were compared with the marks."""
    plain, places = marked("pipeline: p\n" + text)
    checked = check(plain, **GEMS)
    assert [(line, column) for _, line, column in found(checked)] == places
    return checked.diagnostics


def only(text: str) -> str:
    """The code, severity and message of the one thing that is said, at the one mark."""
    (diagnostic,) = diagnostics(text)
    assert diagnostic.hint
    return f"{diagnostic.code} {diagnostic.severity}: {diagnostic.message}"


# Two writers


def two(
    gem: str, other: str = "", *, mode: str = "stream", modes: tuple[str, str] = ("append", "append")
) -> str:
    """Two targets, the second one with a mark where it says what it writes to."""
    return (
        f"mode: {mode}\n"
        "sources: {a: {gem: in}}\n"
        "targets:\n"
        f"  first: {{gem: {gem}, input: a, output_mode: {modes[0]}, options: {{path: out/x}}}}\n"
        f"  second: {{gem: {other or gem}, input: a, output_mode: {modes[1]}, options: {{path: %s}}}}\n"
    )


@pytest.mark.parametrize(
    "path",
    [
        "▶out/x",
        "▶out/x/",
        "▶./out//x",
        "▶out/y/../x",
        "▶/data/out/x",
        "▶file:/data/out/x",
        "▶file:///data/out/x/",
        "▶FILE:///data/out/x",
    ],
)
def test_two_queries_write_files_into_one_folder(path: str) -> None:
    said = only(two("folder") % path)

    assert said.startswith("GB342 error: target `second`: `first` writes to `")
    assert "passed over without an error" in said


@pytest.mark.parametrize("path", ["out/y", "out/x/y", "out", "OUT/x", "s3a://data/out/x", "hdfs:/data/out/x"])
def test_folders_that_are_not_one(path: str) -> None:
    assert diagnostics(two("folder") % path) == []


def test_files_in_the_folder_of_a_table() -> None:
    assert only(two("table", "folder") % "▶out/x").startswith("GB342 error")
    assert only(two("folder", "table") % "▶out/x").startswith("GB342 error")


def test_two_queries_write_into_one_table() -> None:
    assert only(two("table") % "▶out/x") == (
        "GB343 warning: target `second`: `first` writes to `out/x` too: when both change the table at the same "
        "time, as when they create it, one fails"
    )


@pytest.mark.parametrize(
    ("columns", "more", "difference"),
    [
        (("a int, b int", "a int, c int"), "", "only `first` has `b`, and only `second` has `c`"),
        (("a int", "A date"), "", "`a` is `int` in `first` and `date` in `second`"),
        (("a int", "a array<int>"), "topic: new", "`a` is `int` in `first` and `array<int>` in `second`"),
        (("a int, b int", "a int, c int"), "topic: new", None),
        (("a int, b int", "a int"), "", None),
        (("a int", "a int, b int"), "", None),
        (("a int", "a string"), "", None),
        (("a int", None), "", None),
    ],
)
@pytest.mark.parametrize("mode", ["stream", "batch"])
def test_one_table_has_one_set_of_columns(
    columns: tuple[str, str | None], more: str, difference: str | None, mode: str
) -> None:
    class ColumnsSource(InSource):
        """Reads what it is told."""

        def places(self) -> dict[str, list[str]]:
            return {}

        def infer(self, *inputs: Facts) -> Facts:
            return Facts(columns=None if self.options.table is None else columns_of(self.options.table))

    first, second = (f"{{table: '{schema}'}}" if schema else "{}" for schema in columns)
    text = (
        f"pipeline: p\nmode: {mode}\n"
        f"sources: {{a: {{gem: columns, options: {first}}}, b: {{gem: columns, options: {second}}}}}\n"
        "targets:\n"
        f"  first: {{gem: strict, input: a, options: {{path: out/x, {more}}}}}\n"
        "  second: {gem: strict, input: b, options: {path: ▶out/x}}\n"
    )
    plain, places = marked(text)
    found_ = [d for d in check(plain, **GEMS, source_columns=ColumnsSource).diagnostics if d.code != "GB312"]

    if difference is None:
        assert [d.code for d in found_] == (["GB343"] if mode == "stream" else [])
        return
    assert [(d.code, d.severity, d.line, d.column) for d in found_] == [("GB342", "error", *places[0])]
    assert found_[0].message.endswith(f"one table can't take the rows of both: {difference}")


@pytest.mark.parametrize("modes", [("append", "complete"), ("complete", "append")])
def test_a_table_that_is_replaced_has_one_writer(modes: tuple[str, str]) -> None:
    text = two("table", modes=modes) % "▶out/x"
    plain, places = marked("pipeline: p\n" + text)
    said = [d for d in check(plain, **GEMS).diagnostics if d.code == "GB342"]

    assert [(d.line, d.column) for d in said] == places
    replacing = "first" if modes[0] == "complete" else "second"
    assert f"every micro-batch of `{replacing}`" in said[0].message


def test_two_queries_write_into_one_topic() -> None:
    assert diagnostics(two("out").replace("path: out/x", "topic: t").replace("path: %s", "topic: t")) == []


def test_a_third_writer_is_told_too() -> None:
    text = two("folder") % "▶out/x" + "  third: {gem: folder, input: a, options: {path: ▶out/x}}\n"

    assert [d.code for d in diagnostics(text)] == ["GB342", "GB342"]


def test_tables_are_compared_without_case_and_quotes() -> None:
    text = (
        "sources: {a: {gem: in}}\n"
        "targets:\n"
        "  one: {gem: table, input: a, options: {table: main.Web.clicks}}\n"
        "  two: {gem: table, input: a, options: {table: ▶main.web.`Clicks`}}\n"
        "  three: {gem: table, input: a, options: {table: web.clicks}}\n"
    )
    assert only(text).startswith("GB343 warning: target `two`: `one` writes to `main.web.`Clicks`` too")


def test_batches_that_add_and_batches_that_replace() -> None:
    assert diagnostics(two("folder", mode="batch") % "out/x") == []
    assert diagnostics(two("folder", mode="batch", modes=("complete", "append")) % "out/x") == []
    said = only(two("folder", mode="batch", modes=("append", "complete")) % "▶out/x")
    assert said.startswith("GB342 error: target `second`:")
    assert "replaces what it wrote" in said


def test_the_option_is_pointed_at_in_its_other_spelling() -> None:
    text = (two("folder") % "▶out/x").replace("path: ▶", "thePath: ▶")

    assert only(text).startswith("GB342 error")


# Read and written


def loop(
    source: str, target: str, *, mode: str = "stream", gem: str = "folder", output: str = "append"
) -> str:
    """A query that writes to `target` what it reads from `source`."""
    return (
        f"mode: {mode}\n"
        f"sources: {{a: {{gem: in, options: {{{source}}}}}}}\n"
        "targets:\n"
        f"  t: {{gem: {gem}, input: a, output_mode: {output}, options: {{{target}}}}}\n"
    )


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("path: x", "path: ▶x", "reads only what that query wrote"),
        ("path: x/day=1", "path: ▶x", "reads only what that query wrote"),
        ("path: x, below: true", "path: ▶x/y/z", "comes back as a new one, without end"),
        ("path: x/*", "path: ▶x/y", "comes back"),
        ("path: 'x/{a,b}?'", "path: ▶x/b1", "comes back"),
        ("path: 'x/[^a]'", "path: ▶x/b", "comes back"),
        ("path: 'x/*', below: true", "path: ▶x/b/c", "comes back"),
    ],
)
def test_a_query_writes_files_where_it_reads(source: str, target: str, said: str) -> None:
    told = only(loop(source, target))

    assert told.startswith("GB345 error: target `t`: it writes to `x")
    assert said in told


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("path: x", "path: x/y"),
        ("path: x/y", "path: x"),
        ("path: x/*", "path: x"),
        ("path: x/*", "path: x/y/z"),
        ("path: 'x/[^a]'", "path: x/a"),
        ("path: '{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}'", "path: aaaaaaa"),
        ("path: x, below: true", "path: y/x"),
        ("path: x", "table: x"),
        ("topic: x", "topic: y"),
        ("path: x", "path: 's3a://bucket/data/x'"),
    ],
)
def test_what_is_written_is_not_read(source: str, target: str) -> None:
    assert diagnostics(loop(source, target)) == []


@pytest.mark.parametrize(
    ("gem", "place"), [("table", "path: %sx"), ("table", "table: %sx"), ("out", "topic: %sx")]
)
def test_a_query_writes_to_a_table_or_topic_that_it_reads(gem: str, place: str) -> None:
    told = only(loop(place % "", place % "▶", gem=gem))

    assert told == (
        "GB344 warning: target `t`: it writes to `"
        + ("kafka://a:9092/x" if gem == "out" else "x")
        + "`, which `a` reads: each row that it writes comes back as a new one, without end unless something "
        "stops it"
    )


BESIDE = (
    "sources:\n"
    "  a: {gem: in}\n"
    "  b: {gem: in, %s options: {%s}}\n"
    "transforms:\n"
    "  c: {gem: mix, inputs: [a, b]}\n"
    "targets:\n"
    "  t: {gem: %s, input: a, options: {%s}}\n"
    "  u: {gem: out, input: c}\n"
)


def test_a_source_reads_what_another_query_of_the_pipeline_writes() -> None:
    told = only(BESIDE % ("", "path: x", "folder", "path: ▶x"))

    assert told.startswith("GB344 warning: target `t`: it writes to `x`, which `b` reads: the two run beside")
    assert diagnostics(BESIDE % ("", "topic: x", "out", "topic: x")) == []


def test_a_static_source_reads_what_a_query_writes() -> None:
    told = only(BESIDE % ("mode: batch,", "path: x", "table", "path: ▶x"))

    assert "GB344 warning" in told
    assert "depends on when Spark looks" in told


def test_batches_that_read_what_they_write() -> None:
    adds = only(loop("path: x", "path: ▶x", mode="batch"))
    assert adds == (
        "GB344 warning: target `t`: it writes to `x`, which `a` reads: each run adds its rows to what the "
        "next run reads"
    )
    replaces = only(loop("path: x", "path: ▶x", mode="batch", output="complete"))
    assert replaces.startswith("GB345 error: target `t`: it replaces `x`, which `a` reads: Spark empties")
    assert diagnostics(loop("path: x", "path: x", mode="batch", gem="table", output="complete")) == []


@pytest.mark.parametrize("output", ["append", "complete"])
def test_batches_in_which_another_target_writes(output: str) -> None:
    text = "mode: batch\n" + BESIDE.replace("input: a, options", f"input: a, output_mode: {output}, options")

    assert "runs first" in only(text % ("", "path: x", "folder", "path: ▶x"))


# Checkpoints


def with_checkpoints(root: str, source: str, target: str) -> str:
    return f"checkpoints: {root}\n" + loop(source, target)


@pytest.mark.parametrize(
    ("root", "source", "target", "said"),
    [
        ("x", "topic: s", "path: ▶x", "`x` holds the checkpoints too, in `p`"),
        ("x/checkpoints", "topic: s", "path: ▶x", "in `checkpoints/p`"),
        ("file:///data/x/c/", "topic: s", "path: ▶x", "in `c/p`"),
        ("s3a://B/x/c", "topic: s", "path: ▶s3a://b/x", "in `c/p`"),
        ("x", "topic: s", "path: ▶x/p", "`x/p` holds the checkpoints too, in `.`"),
        ("x", "topic: s", "path: ▶x/p/t", "`x/p/t` lies in the checkpoint of `t`"),
        ("x", "topic: s", "path: ▶x/p/t/data", "`x/p/t/data` lies in the checkpoint of `t`"),
        ("x", "path: ▶x/p/t/data", "topic: s2", "`x/p/t/data` lies in the checkpoint of `t`"),
        ("x/c", "'path': ▶x, below: true", "topic: s2", "`x` holds the checkpoints too, in `c/p`"),
        ("x", "path: ▶x/p", "topic: s2", "holds the checkpoints"),
    ],
)
def test_checkpoints_among_data(root: str, source: str, target: str, said: str) -> None:
    told = only(with_checkpoints(root, source, target))

    assert told.startswith("GB347 error: ")
    assert said in told


def test_checkpoints_below_a_folder_that_is_read_alone() -> None:
    told = only(with_checkpoints("x/c", "path: ▶x", "topic: s2"))

    assert told.startswith("GB347 warning: source `a`: `x` holds the checkpoints too, in `c/p`")


@pytest.mark.parametrize(
    ("root", "source", "target"),
    [
        ("x/_checkpoints", "topic: s", "path: x"),
        ("x/.checkpoints", "path: x, below: true", "topic: s"),
        ("x/c/_all", "topic: s", "path: x"),
        ("c", "topic: s", "path: x"),
        ("x", "topic: s", "path: x/y"),
        ("x", "topic: s", "path: x/p/other"),
        ("s3a://one/x", "topic: s", "path: s3a://two/x"),
        ("x", "path: 'x/*'", "topic: s"),
    ],
)
def test_checkpoints_that_are_in_nobodys_way(root: str, source: str, target: str) -> None:
    assert diagnostics(with_checkpoints(root, source, target)) == []


def test_a_batch_has_no_checkpoints() -> None:
    assert diagnostics("checkpoints: x\n" + loop("topic: s", "path: x", mode="batch")) == []


def test_ids_that_differ_in_case_only() -> None:
    text = (
        "sources: {a: {gem: in}}\n"
        "targets:\n"
        "  hours: {gem: out, input: a}\n"
        "  ▶Hours: {gem: out, input: a}\n"
        "  days: {gem: out, input: a}\n"
    )
    told = only(text)

    assert told.startswith(
        "GB346 warning: target `Hours`: its id differs from `hours` in upper and lower case"
    )


# What can't be known


def test_a_gem_that_fails_is_named() -> None:
    text = "sources: {a: {gem: in}}\ntargets: {t: {gem: ▶broken, input: a}}\n"

    assert only(text) == (
        "GB203 warning: target `t`: the gem `broken` fails in `places`: RuntimeError: no idea"
    )


def test_a_gem_that_gives_nonsense_is_named() -> None:
    class Nonsense(OutTarget):
        """Gives a list."""

        def places(self) -> dict[str, list[str]]:
            return ["x"]  # type: ignore[return-value]

    text, places = marked("pipeline: p\nsources: {a: {gem: in}}\ntargets: {t: {gem: ▶nonsense, input: a}}\n")
    checked = check(text, **GEMS, target_nonsense=Nonsense)

    assert found(checked) == [("GB203", *places[0])]


def test_braces_without_end_take_no_time() -> None:
    assert areas_of("/x/" + "{a,b}" * 40, wildcards=True) == []
    assert areas_of("/x/{" + "a," * 100_000 + "b}", wildcards=True) == []
    assert len(areas_of("/x/{a,b,c}/{d,e}", wildcards=True)) == 6
