"""Edits of one pipeline, by name, and what each is called."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.compare import compare
from gem_bundle.changes.record import Record
from gem_bundle.check.checker import check_definition
from gem_bundle.pipeline.document import parse
from gem_bundle.pipeline.loader import LoadOptions, load_values

if TYPE_CHECKING:
    from gem_bundle.changes.model import TargetChanges, Verdict
    from gem_bundle.pipeline.plan import Plan

BASE = """
pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int, at timestamp"}}
transforms:
  timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}
  some: {gem: filter, input: timely, options: {condition: n > 0}}
  counts:
    gem: aggregate
    input: some
    options:
      window: {column: at, duration: 1 hour}
      group_by: [page]
      aggregates: {total: sum(n), most: max(n)}
  named: {gem: rename, input: counts, options: {columns: {page: path}}}
targets:
  out: {gem: file, input: named, options: {format: json, path: out}}
"""


class Edit(NamedTuple):
    """An edit of `BASE`.

    Args:
        name: What is done.
        replaced: The texts that are replaced, with those in their place.
        verdict: What it is called.
        codes: The codes of its changes.
    """

    name: str
    replaced: tuple[tuple[str, str], ...]
    verdict: Verdict
    codes: tuple[str, ...]


def plan(text: str, folder: str = "/shop") -> Plan:
    document = parse(dedent(text), "shop.yaml")
    loaded = load_values(document.values, document, Path(folder), "shop.yaml", LoadOptions(environment={}))
    checked = check_definition(loaded)
    assert checked.plan is not None, checked.diagnostics
    return checked.plan


def verdict(before: str, after: str, target: str = "out") -> TargetChanges:
    """What is said of an edit, by the record that the first version would leave."""
    old, new = plan(before), plan(after)
    kept = Record.from_json(Record("out", (version_of(old, "out"),)).as_json()).newest
    assert kept is not None
    return compare(kept, version_of(new, target), new, target)


def edited_verdict(edit: Edit) -> TargetChanges:
    """What is said of an edit."""
    text = BASE
    for old, new in edit.replaced:
        assert old in text, edit
        text = text.replace(old, new, 1)
    return verdict(BASE, text)


EDITS = [
    Edit("nothing", (), "same", ()),
    Edit("a filter before state", (("n > 0", "n > 1"),), "mixed", ("GB423",)),
    Edit("another way to write it", (("n > 0", "N  >  0"),), "continues", ("GB423",)),
    Edit("an aggregate of the same kind", (("max(n)", "min(n)"),), "mixed", ("GB423",)),
    Edit("an aggregate of another kind", (("max(n)", "avg(n)"),), "refused", ("GB422",)),
    Edit("an aggregate less", ((", most: max(n)", ""),), "refused", ("GB422",)),
    Edit("a key of the same type", (("[page]", "[upper(page) as page]"),), "mixed", ("GB423",)),
    Edit("a key of another type", (("[page]", "[length(page) as page]"),), "refused", ("GB422",)),
    Edit("a key more", (("[page]", "[page, n]"),), "refused", ("GB422",)),
    Edit("another window", (("duration: 1 hour", "duration: 2 hours"),), "mixed", ("GB423",)),
    Edit("another delay", (("delay: 1 hour", "delay: 2 hours"),), "from_now_on", ("GB426",)),
    Edit("a name behind state", (("{page: path}", "{page: url}"),), "from_now_on", ("GB423",)),
    Edit("another folder to read", (("path: data", "path: data2"),), "refused", ("GB414",)),
    Edit("another folder to write", (("path: out", "path: out2"),), "mixed", ("GB431",)),
    Edit(
        "another format to write",
        (("format: json, path: out", "format: orc, path: out"),),
        "mixed",
        ("GB432",),
    ),
    Edit("a column that nobody reads", (("at timestamp", "at timestamp, x int"),), "continues", ("GB415",)),
    Edit("a column's type that is a sum", (("n int", "n double"),), "refused", ("GB422",)),
    Edit(
        "how much at a time",
        (("format: json, path: data", "max_files_per_trigger: 5, format: json, path: data"),),
        "continues",
        ("GB415",),
    ),
    Edit(
        "another id for a source",
        (("clicks: {gem: file,", "visits: {gem: file,"), ("input: clicks", "input: visits")),
        "again",
        ("GB412",),
    ),
    Edit(
        "another id for a source that says so",
        (("clicks: {gem: file,", "visits: {was: clicks, gem: file,"), ("input: clicks", "input: visits")),
        "continues",
        ("GB443",),
    ),
    Edit(
        "another gem for a target",
        (("gem: file, input: named, options: {format: json, path: out}", "gem: noop, input: named"),),
        "from_now_on",
        ("GB430",),
    ),
    Edit(
        "another trigger",
        (("input: named, options", "input: named, trigger: {processing_time: 1 minute}, options"),),
        "continues",
        ("GB434",),
    ),
    Edit(
        "a frozen setting",
        (("pipeline: shop", "pipeline: shop\nspark: {spark.sql.shuffle.partitions: 7}"),),
        "continues",
        ("GB440",),
    ),
    Edit(
        "another source beside it",
        (
            ("input: clicks", "input: all"),
            (
                "transforms:\n",
                '  more: {gem: file, options: {format: json, path: more, schema: "page string, n int, at timestamp"}}\ntransforms:\n  all: {gem: union, inputs: [clicks, more]}\n',
            ),
        ),
        "skipped",
        ("GB410", "GB420"),
    ),
    Edit(
        "a filter behind state",
        (
            ("input: named,", "input: big,"),
            ("targets:\n", "  big: {gem: filter, input: named, options: {condition: total > 5}}\ntargets:\n"),
        ),
        "from_now_on",
        ("GB420",),
    ),
    Edit(
        "a filter behind state, over what is grouped by: Spark puts it before",
        (
            ("input: named,", "input: big,"),
            (
                "targets:\n",
                "  big: {gem: filter, input: named, options: {condition: path <> 'x'}}\ntargets:\n",
            ),
        ),
        "mixed",
        ("GB420",),
    ),
    Edit(
        "a filter less",
        (
            ("  some: {gem: filter, input: timely, options: {condition: n > 0}}\n", ""),
            ("input: some", "input: timely"),
        ),
        "mixed",
        ("GB421",),
    ),
    Edit(
        "a column more that nobody counts",
        (
            ("input: some\n", "input: wide\n"),
            (
                "  counts:",
                "  wide: {gem: with_columns, input: some, options: {columns: {x: n + 1}}}\n  counts:",
            ),
        ),
        "continues",
        ("GB420",),
    ),
    Edit(
        "duplicates dropped, which keeps state",
        (
            ("input: named,", "input: once,"),
            (
                "targets:\n",
                "  once: {gem: deduplicate, input: named, options: {columns: [path, window]}}\ntargets:\n",
            ),
        ),
        "refused",
        ("GB422",),
    ),
    Edit(
        "a transform under another id",
        (("  counts:", "  sums:"), ("input: counts", "input: sums")),
        "continues",
        ("GB443",),
    ),
    Edit("aggregates under another name", (("total: sum(n)", "sum: sum(n)"),), "from_now_on", ("GB423",)),
    Edit(
        "sessions in place of windows",
        (("window: {column: at, duration: 1 hour}", "session: {column: at, gap: 5 minutes}"),),
        "refused",
        ("GB422", "GB422"),
    ),
]
