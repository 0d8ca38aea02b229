"""`gem-bundle plan` of sources that begin at the newest: rows that no checkpoint knows of are never read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from gem_bundle.plugins import load_registry
from tests.core.cli.left_by_runs import left_by_a_run
from tests.core.cli.test_plan import written

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Cli = Callable[..., Result]

NEWEST = "from what comes after the start"
KAFKA = {"bootstrap_servers": "b:9092", "subscribe": ["more"]}
JDBC = {"url": "jdbc:postgresql://localhost/shop", "table": "more", "increasing": "id"}
LOADER = {"format": "text", "path": "/Volumes/more", "schema": "value string"}


class Begin(NamedTuple):
    """A source that begins at the newest, and how it begins elsewhere.

    Args:
        gem: Its gem.
        options: Its options.
        option: The option that says where it begins; empty for a source that always begins so.
        elsewhere: Its value for another beginning.
        words: That beginning, in words.
    """

    gem: str
    options: dict[str, Any]
    option: str = ""
    elsewhere: Any = None
    words: str = "from its beginning"


OPTIONS = "from the offsets or the time that its options name"
BEGINS = [
    Begin("kafka", KAFKA, "starting_offsets", "earliest"),
    Begin("kafka", {**KAFKA, "starting_offsets": "latest"}, "starting_offsets", "earliest"),
    Begin(
        "kafka", {**KAFKA, "starting_offsets": {"more": {0: -1, 1: "latest"}}}, "starting_offsets", "earliest"
    ),
    Begin("kafka", KAFKA, "starting_offsets", {"more": {0: 23}}, OPTIONS),
    Begin("kafka", KAFKA, "starting_timestamp", "2026-01-01T00:00:00Z", OPTIONS),
    Begin("kafka", KAFKA, "starting_offsets_by_timestamp", {"more": {0: "2026-01-01T00:00:00Z"}}, OPTIONS),
    Begin("delta", {"path": "more", "starting_version": "latest"}, "starting_version", None),
    Begin(
        "delta", {"path": "more", "starting_version": "latest"}, "starting_version", 3, "from version 3 on"
    ),
    Begin("jdbc", {**JDBC, "starting": "latest"}, "starting", "earliest"),
    Begin("jdbc", {**JDBC, "starting": "latest"}, "starting", "7", "behind the value 7"),
    Begin("auto_loader", {**LOADER, "include_existing_files": False}, "include_existing_files", True),
    Begin("rate", {}),
    Begin("socket", {"host": "localhost", "port": 1}),
]
OTHERS = [begin for begin in BEGINS if begin.option]

OLD = """pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "n int"}}
targets:
  all: {gem: noop, input: clicks}
"""
REPLACED = """pipeline: shop
sources:
  more: MORE
transforms:
  ones: {gem: select, input: more, options: {columns: ["1 as n"]}}
targets:
  all: {gem: noop, input: ones}
"""
ADDED = """pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "n int"}}
  more: MORE
transforms:
  ones: {gem: select, input: more, options: {columns: ["1 as n"]}}
  both: {gem: union, inputs: [clicks, ones]}
targets:
  all: {gem: noop, input: both}
"""


def with_source(text: str, gem: str, options: dict[str, Any]) -> str:
    return text.replace("MORE", json.dumps({"gem": gem, "options": options}))


def planned(
    cli: Cli, folder: Path, text: str, *, before: str, named: bool = True
) -> tuple[int, dict[str, Any]]:
    """The exit status, and what is said of the target of a pipeline in whose place another one comes."""
    file = written(folder, before)
    left_by_a_run(file)
    result = cli("plan", str(written(folder, text)), "--format", "json")
    content = json.loads(result.stdout)
    assert content["ok"] == (result.exit_code == 0)
    assert not [found for found in content["diagnostics"] if found["severity"] == "error"]
    (target,) = content["targets"].values()
    return result.exit_code, target


def test_each_source_that_may_begin_at_the_newest_is_tried() -> None:
    registry = load_registry({})
    known = {begin.gem: {one.option for one in BEGINS if one.gem == begin.gem} for begin in BEGINS}
    for name in registry.names("source"):
        gem: Any = registry.get("source", name).load()
        starts = {
            option
            for option in gem.options_type.model_fields
            if option.startswith("starting") or option == "include_existing_files"
        } - {"starting_timestamp", "starting_offsets_by_timestamp_strategy"}
        assert starts <= known.get(name, set()), name
        assert name in known or not gem.semantics.only_new, name


@pytest.mark.parametrize("begin", BEGINS, ids=str)
def test_one_that_is_added(cli: Cli, tmp_path: Path, begin: Begin) -> None:
    status, target = planned(cli, tmp_path, with_source(ADDED, begin.gem, begin.options), before=OLD)
    assert (status, target["verdict"]) == (1, "skipped")
    (change,) = (one for one in target["changes"] if one["code"] == "GB410")
    assert {key: change[key] for key in ("verdict", "node", "path", "line", "before", "after")} == {
        "verdict": "skipped",
        "node": "more",
        "path": ["sources", "more"],
        "line": 4,
        "before": None,
        "after": begin.gem,
    }
    assert change["message"] == (
        f"source `more` is new and begins {NEWEST}: what is there already is never read"
    )
    assert "`--accept GB410:more`" in change["hint"]


@pytest.mark.parametrize("begin", OTHERS, ids=str)
def test_one_that_is_added_and_begins_elsewhere(cli: Cli, tmp_path: Path, begin: Begin) -> None:
    options = {name: value for name, value in begin.options.items() if name != begin.option}
    options |= {} if begin.elsewhere is None else {begin.option: begin.elsewhere}
    status, target = planned(cli, tmp_path, with_source(ADDED, begin.gem, options), before=OLD)
    assert status == 0
    (change,) = (one for one in target["changes"] if one["code"] == "GB410")
    assert change["verdict"] == "continues"
    assert change["message"] == f"source `more` is new: it is read {begin.words}"


@pytest.mark.parametrize("begin", BEGINS, ids=str)
def test_one_in_the_place_of_another(cli: Cli, tmp_path: Path, begin: Begin) -> None:
    status, target = planned(cli, tmp_path, with_source(REPLACED, begin.gem, begin.options), before=OLD)
    assert (status, target["verdict"]) == (1, "skipped")
    assert {
        (one["code"], one["verdict"], one["node"]) for one in target["changes"] if one["verdict"] == "skipped"
    } == {
        ("GB410", "skipped", "more"),
        ("GB411", "skipped", "clicks"),
    }


@pytest.mark.parametrize("begin", BEGINS, ids=str)
def test_one_that_has_another_name(cli: Cli, tmp_path: Path, begin: Begin) -> None:
    """Nothing is read again: it begins once more, and passes over what came since the last run."""
    before = with_source(REPLACED, begin.gem, begin.options)
    renamed = before.replace("  more: {", "  others: {").replace("input: more", "input: others")
    status, target = planned(cli, tmp_path, renamed, before=before)
    assert (status, target["verdict"]) == (1, "skipped")
    (change,) = (one for one in target["changes"] if one["code"] == "GB412")
    assert change["message"] == (
        "source `more` is called `others` now, and the checkpoint knows nothing of that: it begins "
        f"{NEWEST}, and what has come since the last run is never read"
    )
    assert change["hint"] == "Write `was: more` at `others` if it is the same source."
    said = renamed.replace("  others: {", "  others: {was: more, ")
    assert planned(cli, tmp_path, said, before=before)[0] == 0


def test_duplicates_that_are_dropped_are_no_comfort_there(cli: Cli, tmp_path: Path) -> None:
    """Of rows that come again a removal of duplicates makes nothing; these don't come again."""
    text = REPLACED.replace("input: ones", "input: once").replace(
        "targets:", "  once: {gem: deduplicate, input: ones, options: {columns: [n]}}\ntargets:"
    )
    for options, verdict in (({"starting_offsets": "earliest"}, "continues"), ({}, "skipped")):
        before = with_source(text, "kafka", {**KAFKA, **options})
        renamed = before.replace("  more: {", "  others: {").replace("input: more", "input: others")
        assert planned(cli, tmp_path, renamed, before=before)[1]["verdict"] == verdict


@pytest.mark.parametrize("begin", OTHERS, ids=str)
def test_on_an_old_checkpoint_another_beginning_is_ignored(cli: Cli, tmp_path: Path, begin: Begin) -> None:
    options = {name: value for name, value in begin.options.items() if name != begin.option}
    options |= {} if begin.elsewhere is None else {begin.option: begin.elsewhere}
    before = with_source(REPLACED, begin.gem, begin.options)
    status, target = planned(cli, tmp_path, with_source(REPLACED, begin.gem, options), before=before)
    assert (status, target["verdict"]) == (0, "continues")
    (change,) = target["changes"]
    assert (change["code"], change["path"]) == ("GB415", ["sources", "more", "options", begin.option])
    assert f"source `more`: `{begin.option}` was " in change["message"]
    assert change["message"].endswith("by a new checkpoint only")


@pytest.mark.parametrize("begin", BEGINS, ids=str)
def test_without_a_checkpoint_it_is_said_where_it_begins(cli: Cli, tmp_path: Path, begin: Begin) -> None:
    text = with_source(REPLACED, begin.gem, begin.options)
    content = json.loads(cli("plan", str(written(tmp_path, text)), "--format", "json").stdout)
    (change,) = content["targets"]["all"]["changes"]
    assert (change["verdict"], change["code"]) == ("new", "GB444")
    assert change["message"] == f"target `all` has no checkpoint yet: `more` {NEWEST} will be read"


PATHS = """pipeline: shop
sources:
  more: MORE
transforms:
  ones: {gem: select, input: more, options: {columns: ["1 as n"]}}
  both: {gem: union, inputs: {first: ones, second: ones}}
targets:
  all: {gem: noop, input: both}
"""


@pytest.mark.parametrize(("start", "verdict"), [("earliest", "again"), ("latest", "skipped")])
def test_a_reader_more(cli: Cli, tmp_path: Path, start: str, verdict: str) -> None:
    options = {**KAFKA, "starting_offsets": start}
    two, one = (with_source(text, "kafka", options) for text in (PATHS, REPLACED))
    status, target = planned(cli, tmp_path, two, before=one)
    assert (status, target["verdict"]) == (1, verdict), target
    assert "GB418" in {change["code"] for change in target["changes"]}


@pytest.mark.parametrize(("start", "verdict"), [("earliest", "again"), ("latest", "skipped")])
def test_targets_that_begin_anew(cli: Cli, tmp_path: Path, start: str, verdict: str) -> None:
    """In a query that has no checkpoint, and under another name where rows are already."""
    text = with_source(REPLACED, "kafka", {**KAFKA, "starting_offsets": start})
    former = written(
        tmp_path, text.replace("{gem: noop", "{gem: file, options: {format: json, path: out}"), "a.yaml"
    )
    renamed = written(tmp_path, former.read_text().replace("  all: {", "  files: {"), "b.yaml")
    content = json.loads(cli("plan", str(renamed), "--against", str(former), "--format", "json").stdout)
    (change,) = content["targets"]["files"]["changes"]
    assert (change["verdict"], change["code"]) == (verdict, "GB435")

    apart = written(tmp_path, text + "  others: {gem: noop, input: ones}\n", "c.yaml")
    together = written(tmp_path, apart.read_text().replace("noop,", "noop, group: both,"), "d.yaml")
    content = json.loads(cli("plan", str(together), "--against", str(apart), "--format", "json").stdout)
    changes = [change for target in content["targets"].values() for change in target["changes"]]
    assert {(change["verdict"], change["code"]) for change in changes} == {(verdict, "GB447")}


@pytest.mark.parametrize(
    ("text", "start", "verdicts"),
    [
        (ADDED, "latest", {"more": "skipped"}),
        (ADDED, "earliest", {"more": "continues"}),
        (REPLACED, "latest", {"more": "skipped", None: "skipped"}),
        (REPLACED, "earliest", {"more": "again", None: "skipped"}),
    ],
)
@pytest.mark.parametrize("first", [False, True])
def test_where_no_record_tells_what_ran(
    cli: Cli, tmp_path: Path, text: str, start: str, verdicts: dict[str | None, str], first: bool
) -> None:
    left_by_a_run(written(tmp_path, OLD))
    for record in tmp_path.rglob(".*.record.json"):
        record.unlink()
    text = with_source(text, "kafka", {**KAFKA, "starting_offsets": start})
    if first and text.count("{gem: file"):  # it goes by no order
        lines = text.splitlines()
        lines[2], lines[3] = lines[3], lines[2]
        text = "\n".join(lines).replace("[clicks, ones]", "[ones, clicks]")
    content = json.loads(cli("plan", str(written(tmp_path, text)), "--format", "json").stdout)
    changes = content["targets"]["all"]["changes"]
    assert {one["node"]: one["verdict"] for one in changes if one["code"] in {"GB410", "GB411"}} == verdicts
