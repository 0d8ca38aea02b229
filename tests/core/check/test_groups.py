"""Which targets can share a query, and who joins them by itself."""

from __future__ import annotations

import pytest

from gem_bundle.pipeline.groups import groups_of, shared_outputs
from tests.core.checking import MARK
from tests.core.streams import assert_found, check, errors

EVEN = "  even: {gem: filter, input: ticks, options: {condition: value % 2 = 0}}\n"
COUNTS = "  counts: {gem: aggregate, input: even, options: {group_by: [value], aggregates: {n: count(*)}}}\n"
NAMED = "  named: {gem: select, input: counts, options: {columns: [value as id, n]}}\n"
HELD = "  held: {gem: expect, input: even, options: {rules: {small: value < 10}}}\n"


def transforms(*nodes: str) -> str:
    return "transforms:\n" + "".join(nodes)


def to(name: str, input_: str, group: str = "both", more: str = "") -> str:
    own = f", group: {group}" if group else ""
    return f"  {name}: {{gem: delta, input: {input_}{own}{more}, options: {{path: {name}}}}}\n"


def forks(piece: str) -> dict[str, tuple[str | None, list[str]]]:
    plan = check(piece).plan
    assert plan is not None, check(piece).diagnostics
    return {
        group.name: (group.fork and ".".join(filter(None, group.fork)), [node.id for node in group.targets])
        for group in groups_of(plan)
    }


@pytest.mark.parametrize(
    ("targets", "fork"),
    [
        (to("a", "ticks") + to("b", "even"), "ticks"),
        (to("a", "even") + to("b", "even"), "even"),
        (to("a", "held") + to("b", "held.rejected"), "even"),
        (to("a", "held"), "held"),
        (to("a", "held.rejected"), "held.rejected"),
    ],
)
def test_a_query_goes_as_far_as_all_rows_do(targets: str, fork: str) -> None:
    piece = transforms(EVEN, HELD) + "targets:\n" + targets
    assert [found for found, _ in forks(piece).values()] == [fork]


def test_two_ways_from_one_node_meet_behind_it() -> None:
    both = "  both: {gem: union, inputs: [even, held]}\n"
    piece = transforms(EVEN, HELD, both) + "targets:\n" + to("a", "both") + to("b", "held")
    assert forks(piece) == {"both": ("even", ["a", "b"])}


SLOW = "  slow: {gem: with_columns, input: held, options: {columns: {u: uuid()}}}\n"
LARGE = "  large: {gem: filter, input: slow, options: {condition: value > 5}}\n"
SMALL = "  small: {gem: filter, input: slow, options: {condition: value < 5}}\n"
BOTH = "  both: {gem: union, inputs: [large, small]}\n"


@pytest.mark.parametrize(
    ("nodes", "targets", "shared"),
    [
        # Nothing lies behind the fork; or one target alone gets it.
        ([EVEN], to("a", "even") + to("b", "even"), []),
        ([EVEN, HELD, SLOW], to("a", "slow") + to("r", "held.rejected"), []),
        ([EVEN, HELD, SLOW], to("a", "slow"), []),
        # Of several one behind the other it is the last one.
        ([EVEN, HELD, SLOW], to("a", "slow") + to("b", "slow") + to("r", "held.rejected"), ["slow"]),
        ([EVEN, HELD, SLOW, LARGE], to("a", "slow") + to("b", "large") + to("r", "held.rejected"), ["slow"]),
        ([EVEN, HELD, SLOW], to("a", "slow") + to("b", "held") + to("r", "held.rejected"), ["held"]),
        (
            [EVEN, HELD, SLOW, LARGE],
            "".join(
                [
                    to("a", "large"),
                    to("b", "large"),
                    to("c", "slow"),
                    to("d", "held"),
                    to("r", "held.rejected"),
                ]
            ),
            ["held", "large", "slow"],
        ),
        # Two that lead to the same targets are two askers.
        (
            [EVEN, HELD, SLOW, LARGE, SMALL, BOTH],
            to("a", "both") + to("b", "large") + to("r", "held.rejected"),
            ["large", "slow"],
        ),
    ],
)
def test_what_is_made_behind_the_fork_for_several_is_shared(
    nodes: list[str], targets: str, shared: list[str]
) -> None:
    plan = check(transforms(*nodes) + "targets:\n" + targets).plan
    assert plan is not None
    (group,) = groups_of(plan)
    assert group.fork is not None
    found = shared_outputs(plan, group.fork, [node.id for node in group.targets])
    assert sorted(".".join(filter(None, output)) for output in found) == shared


def test_a_static_side_need_not_come_through_the_fork() -> None:
    names = "  names: {gem: rows, mode: batch, options: {schema: value bigint, rows: [[1]]}}\n"
    joined = '  joined: {gem: join, inputs: [even, names], options: {"on": [value]}}\n'
    piece = f"sources:\n  ticks: {{gem: rate}}\n{names}" + transforms(EVEN, joined)
    assert forks(piece + "targets:\n" + to("a", "joined") + to("b", "even")) == {"both": ("even", ["a", "b"])}


@pytest.mark.parametrize(
    ("targets", "groups"),
    [
        (to("a", "held") + to("r", "held.rejected", ""), {"both": ["a", "r"]}),
        (to("a", "held", "") + to("r", "held.rejected", ""), {}),
        (
            to("a", "held") + to("b", "held", "other") + to("r", "held.rejected", ""),
            {"both": ["a"], "other": ["b"]},
        ),
        (to("a", "held") + to("r", "held.rejected", "alone"), {"both": ["a"], "alone": ["r"]}),
        # The one that joins is what the other one waits for, in either order of the file.
        (
            to("r", "held.rejected", "") + to("s", "strict.rejected", "") + to("a", "strict"),
            {"both": ["r", "s", "a"]},
        ),
    ],
)
def test_rejected_rows_go_with_the_others(targets: str, groups: dict[str, list[str]]) -> None:
    strict = "  strict: {gem: expect, input: held, options: {rules: {positive: value > 0}}}\n"
    found = forks(transforms(EVEN, HELD, strict) + "targets:\n" + targets)
    assert {name: targets for name, (_, targets) in found.items()} == groups


@pytest.mark.parametrize(
    ("targets", "code", "says"),
    [
        (
            to("a", "held") + to("r", "held.rejected", "", ", trigger: {processing_time: 1 minute}"),
            ("GB380", "r"),
            "its trigger is `processing_time: 1 minute`, and that of target `a` of its group `both` is "
            "`default`: one query has one; it is in the group because it takes what `held` rejects",
        ),
        (
            to("a", "even", more=", trigger: {continuous: 1 second}"),
            ("GB380", "a"),
            "has no micro-batches that targets could share",
        ),
        (
            "  a: {gem: noop, input: counts, output_mode: update, group: both}\n"
            "  b: {gem: noop, input: counts, output_mode: complete, group: both}\n",
            ("GB380", "b"),
            "its output mode is `complete`, and that of target `a` of its group `both` is `update`",
        ),
        (
            "  a: {gem: noop, input: named, output_mode: update, group: both}\n"
            "  b: {gem: noop, input: ticks, output_mode: update, group: both}\n",
            ("GB382", "a"),
            "`counts`, which lies between `ticks` and this target, keeps state over micro-batches (`aggregate`)",
        ),
        (
            "  a: {gem: file, input: even, group: both, options: {format: json, path: a}}\n",
            ("GB383", "a"),
            "`file` can't be in a group",
        ),
        (
            to("both", "even"),
            ("GB104", "both"),
            "the group `both` would have the checkpoint of `both`",
        ),
        (
            to("a", "even", "other") + to("b", "even", "OTHER2") + to("other", "even", ""),
            ("GB104", "a"),
            "the group `other` would have the checkpoint of `other`",
        ),
    ],
)
def test_what_can_not_be_one_query(targets: str, code: tuple[str, str], says: str) -> None:
    found = check(transforms(EVEN, COUNTS, NAMED, HELD) + "targets:\n" + targets).diagnostics
    assert code in {(d.code, d.node) for d in found if d.is_error}, found
    assert any(says in d.message for d in found if d.code == code[0]), found


def test_streams_that_meet_nowhere_are_two_queries() -> None:
    piece = "sources:\n  ticks: {gem: rate}\n  tocks: {gem: rate}\ntargets:\n"
    found = assert_found(
        piece + to("a", "ticks") + to("b", "tocks").replace("group: both", f"group: {MARK}both"), "GB381"
    )
    assert "no one node through which all rows of `a`, `b` come" in found[0].message


def test_state_before_the_fork_stays() -> None:
    one = "  a: {gem: noop, input: counts, output_mode: update, group: both}\n"
    two = "  b: {gem: noop, input: named, output_mode: update, group: both}\n"
    assert errors(transforms(EVEN, COUNTS, NAMED) + "targets:\n" + one + two) == []


def test_state_behind_the_fork_is_found_behind_other_operators() -> None:
    many = "  many: {gem: filter, input: named, options: {condition: n > 2}}\n"
    one = "  a: {gem: noop, input: many, output_mode: update, group: both}\n"
    two = "  b: {gem: noop, input: even, output_mode: update, group: both}\n"
    found = errors(transforms(EVEN, COUNTS, NAMED, many) + "targets:\n" + one + two)
    assert found == [("GB382", "a")]


def test_a_gem_that_does_not_tell_its_operators_may_keep_state() -> None:
    unknown = "  own: {gem: python, input: even, options: {function: 'tests.core.named_jobs:clean'}}\n"
    piece = transforms(EVEN, unknown) + "targets:\n" + to("a", "own") + to("b", "even")
    assert errors(piece) == [("GB382", "a")]


@pytest.mark.parametrize(
    "wrong", ["{gem: filter, input: even, options: {conditon: value > 1}}", "{gem: filtr, input: even}"]
)
def test_a_node_that_is_wrong_is_not_taken_for_one_with_state(wrong: str) -> None:
    behind = "  behind: {gem: filter, input: wrong, options: {condition: value > 1}}\n"
    piece = (
        transforms(EVEN, f"  wrong: {wrong}\n", behind) + "targets:\n" + to("a", "behind") + to("b", "even")
    )
    assert {node for _, node in errors(piece)} == {"wrong"}


def test_rows_are_counted_before_they_are_written_in_groups_only() -> None:
    limited = HELD.replace("{rules", "{max_rejected: 5%, rules")
    taken = to("r", "held.rejected", "")
    assert errors(transforms(EVEN, limited) + "targets:\n" + to("a", "held", "") + taken) == [
        ("GB387", "held")
    ]
    # The fork is before the node that counts.
    piece = transforms(EVEN, limited) + "targets:\n" + to("a", "held")
    assert errors(piece + to("b", "ticks", "")) == []
    plan = check(piece).plan
    assert plan is not None
    assert [group.fork for group in groups_of(plan)] == [("even", None)]


def test_a_target_of_what_is_not_there_is_told_by_that_alone() -> None:
    topic = """targets:
  topic: {gem: kafka, input: nowhere, options:
      {bootstrap_servers: ["localhost:9092"], topic: t, value: cast(value as string)}}\n"""
    assert "GB101" in {d.code for d in check(topic).diagnostics}


def test_a_batch_has_no_groups() -> None:
    rows = "sources:\n  ticks: {gem: rows, options: {schema: value int, rows: [[1]]}}\n"
    held = "  held: {gem: expect, input: ticks, options: {rules: {small: value < 10}}}\n"
    piece = "mode: batch\n" + rows + transforms(held) + "targets:\n" + to("a", "held")
    found = check(piece + to("r", "held.rejected", "")).diagnostics
    assert [(d.code, d.node, d.severity) for d in found] == [("GB385", "a", "warning")]


def test_a_target_says_what_it_promises_in_a_group() -> None:
    topic = """  topic: {gem: kafka, input: even, group: both, options:
      {bootstrap_servers: ["localhost:9092"], topic: t, value: cast(value as string)}}\n"""
    found = check(transforms(EVEN) + "targets:\n" + to("a", "even") + topic).diagnostics
    assert [(d.code, d.node) for d in found] == [("GB341", "topic")]


def test_what_gets_rows_one_by_one_has_to_be_in_a_group_so_that_a_rule_that_fails_is_asked_first() -> None:
    held = "  held: {gem: expect, input: ticks, options: {action: fail, rules: {small: value < 10}}}\n"
    topic = """  topic: {gem: kafka, input: held, GROUP options:
      {bootstrap_servers: ["localhost:9092"], topic: t, value: cast(value as string)}}\n"""
    for group, told in (("", True), ("group: alone,", False)):
        text = transforms(held) + "targets:\n" + topic.replace("GROUP", group)
        (found,) = (d for d in check(text).diagnostics if d.code != "GB109")
        assert found.code == "GB341"
        assert ("in a `group`, also by itself, all are looked at first" in (found.hint or "")) is told
        assert ("`held` ends the query" in (found.hint or "")) is told


def sends(name: str, input_: str, group: str = "", more: str = "", rejects: bool = True) -> str:
    own = f", group: {group}" if group else ""
    options = f'{{function: "tests.core.named_jobs:send", rejects: {str(rejects).lower()}}}'
    return f"  {name}: {{gem: foreach, input: {input_}{own}{more}, options: {options}}}\n"


@pytest.mark.parametrize(
    ("targets", "groups"),
    [
        # Nobody takes what it rejects: it is a group alone, which has the checkpoint that it would have.
        (sends("s", "even"), {"s": ("even", ["s"])}),
        (sends("s", "even", rejects=False), {}),
        (sends("s", "even") + to("r", "s.rejected", ""), {"s": ("even", ["s", "r"])}),
        (to("r", "s.rejected", "") + sends("s", "even"), {"s": ("even", ["r", "s"])}),
        (sends("s", "even", "both") + to("r", "s.rejected", ""), {"both": ("even", ["s", "r"])}),
        (sends("s", "even") + to("r", "s.rejected"), {"both": ("even", ["s", "r"])}),
        (
            sends("s", "even") + sends("t", "s.rejected") + to("r", "t.rejected", ""),
            {"s": ("even", ["s", "t", "r"])},
        ),
        (
            sends("s", "even") + to("r", "s.rejected", "") + to("q", "s.rejected", "") + to("a", "ticks", ""),
            {"s": ("even", ["s", "r", "q"])},
        ),
    ],
)
def test_who_takes_what_a_target_rejects_is_in_its_group(
    targets: str, groups: dict[str, tuple[str, list[str]]]
) -> None:
    piece = transforms(EVEN) + "targets:\n" + targets
    assert forks(piece) == groups
    plan = check(piece).plan
    assert plan is not None
    assert all(
        plan.definition.checkpoint(name).endswith(f"/{group}")
        for group, (_, n) in groups.items()
        for name in n
    )


def test_a_target_goes_on_from_the_record_it_had_alone() -> None:
    piece = transforms(EVEN) + "targets:\n" + sends("s", "even") + to("r", "s.rejected", "")
    plan = check(piece).plan
    assert plan is not None
    assert plan.definition.record("s") == plan.definition.checkpoint("s")
    assert plan.definition.record("r") == f"{plan.definition.checkpoint('s')}.r"


@pytest.mark.parametrize(
    ("targets", "code", "says"),
    [
        (
            sends("s", "even", "one") + to("r", "s.rejected", "other"),
            ("GB388", "r"),
            "it takes what target `s` rejects, which the query of that target has to write, and is in the group `other`",
        ),
        (
            sends("s", "even", rejects=False) + to("r", "s.rejected", ""),
            ("GB106", "r"),
            "with these options `s` rejects no rows",
        ),
        (
            to("s", "even", "") + to("r", "s.rejected", ""),
            ("GB106", "r"),
            "target `s` rejects no rows",
        ),
        (sends("s", "even") + to("r", "s", ""), ("GB101", "r"), "a target has no output"),
        (
            sends("s", "even", more=", trigger: {real_time: 5 minutes}"),
            ("GB380", "s"),
            "has no micro-batches",
        ),
        (
            sends("s", "even") + to("r", "s.rejected", "", ", trigger: {processing_time: 1 minute}"),
            ("GB380", "r"),
            "it is in the group because it takes what `s` rejects",
        ),
    ],
)
def test_what_a_target_rejects_can_not_go_everywhere(targets: str, code: tuple[str, str], says: str) -> None:
    found = check(transforms(EVEN) + "targets:\n" + targets).diagnostics
    assert code in {(d.code, d.node) for d in found if d.is_error}, found
    assert any(says in d.message for d in found if d.code == code[0]), found


def test_state_behind_what_a_target_rejects_is_refused() -> None:
    counts = "  counts: {gem: aggregate, input: s.rejected, options: {group_by: [node], aggregates: {n: count(*)}}}\n"
    more = ", output_mode: update"
    piece = transforms(EVEN, counts) + "targets:\n" + sends("s", "even", more=more)
    found = errors(piece + "  r: {gem: noop, input: counts, output_mode: update}\n")
    assert found == [("GB382", "r")]


def test_rejected_rows_of_a_target_that_go_nowhere_are_a_warning() -> None:
    found = check(transforms(EVEN) + "targets:\n" + sends("s", "even")).diagnostics
    assert [(d.code, d.node, d.severity) for d in found if d.code == "GB109"] == [("GB109", "s", "warning")]


FROM_KAFKA = """
sources:
  ticks: {gem: kafka, options: {bootstrap_servers: ["localhost:9092"], subscribe: t, include_headers: false}}
"""
PARSED = (
    "  held: {gem: from_json, input: ticks, options: {column: value, schema: value int, rejects: true}}\n"
)


@pytest.mark.parametrize(
    ("piece", "said"),
    [
        (
            transforms(EVEN, HELD) + "targets:\n" + to("a", "held", ""),
            "`ticks` (`rate`) each of their queries",
        ),
        (transforms(EVEN, HELD) + "targets:\n" + to("a", "held"), None),
        (
            transforms(EVEN, HELD) + "targets:\n" + to("a", "held") + to("b", "held", "other"),
            "neither to `a` nor to `r`",
        ),
        (
            FROM_KAFKA + transforms(PARSED) + "targets:\n" + to("a", "held", ""),
            "`starting_offsets` lets each",
        ),
        (
            FROM_KAFKA.replace("subscribe: t", "subscribe: t, starting_offsets: earliest")
            + transforms(PARSED)
            + "targets:\n"
            + to("a", "held", ""),
            None,
        ),
    ],
)
def test_two_queries_of_a_source_that_gives_each_other_rows(piece: str, said: str | None) -> None:
    found = check(piece + to("r", "held.rejected", "")).diagnostics
    told = [(d.code, d.node, d.severity) for d in found]
    assert told == ([] if said is None else [("GB389", "held", "warning")])
    assert all(said is not None and said in d.message for d in found)


def test_one_query_has_both_whoever_has_one_of_them_too() -> None:
    targets = to("a", "held") + to("r", "held.rejected") + to("b", "held", "")
    assert check(transforms(EVEN, HELD) + "targets:\n" + targets).diagnostics == []


def test_a_batch_takes_what_a_target_rejects_without_a_group() -> None:
    rows = "sources:\n  ticks: {gem: rows, options: {schema: value int, rows: [[1]]}}\n"
    piece = "mode: batch\n" + rows + "targets:\n" + sends("s", "ticks") + to("r", "s.rejected", "")
    assert check(piece).diagnostics == []
