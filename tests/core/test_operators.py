"""Facts and operators: what flows from node to node, and the graph of what restricts a stream."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gem_bundle.facts import (
    UNKNOWN_DELAY,
    UNKNOWN_OPERATOR,
    Column,
    Facts,
    combined,
    entering,
    event_times,
    merged,
)
from gem_bundle.operators import (
    AggregateOperator,
    Ancestry,
    DeduplicateOperator,
    JoinOperator,
    Operator,
    OperatorKind,
    WatermarkOperator,
    walk,
)
from tests.counting import calls_of

STREAM = Facts(streaming=True, columns=(Column("at", "timestamp"),), bounded=False)
STATIC = Facts(streaming=False, columns=(Column("at", "timestamp"),), bounded=True)
UNKNOWN = Facts()


def kinds(facts: Facts) -> list[str]:
    return [operator.kind for operator in facts.all_operators()]


# Operators


def test_operators_are_equal_only_if_they_are_one_object() -> None:
    first, second = Operator("sort", "by"), Operator("sort", "by")

    assert first != second
    assert len({first, second, *walk([first])}) == 2


def test_operators_dont_change() -> None:
    with pytest.raises(FrozenInstanceError):
        Operator("sort").node = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("streams", "streaming"),
    [
        ((), False),
        ((True,), True),
        ((False,), False),
        ((None,), None),
        ((False, True), True),
        ((None, True), True),
        ((None, False), None),
        ((False, False), False),
    ],
)
def test_an_operator_streams_when_an_operand_does(
    streams: tuple[bool | None, ...], streaming: bool | None
) -> None:
    assert Operator("filter", streams=streams).streaming is streaming


@pytest.mark.parametrize("kind", ["aggregate", "custom", "deduplicate", "limit"])
def test_operators_with_state_have_it_on_streams_only(kind: OperatorKind) -> None:
    assert Operator(kind, streams=(True,)).stateful is True
    assert Operator(kind, streams=(False,)).stateful is False
    assert Operator(kind, streams=(None,)).stateful is None


@pytest.mark.parametrize("kind", ["filter", "sort", "union", "watermark", "python", "repartition", "except"])
def test_other_operators_have_no_state(kind: OperatorKind) -> None:
    assert Operator(kind, streams=(True, True)).stateful is False


@pytest.mark.parametrize(
    ("streams", "stateful"),
    [
        ((True, True), True),
        ((True, False), False),
        ((False, True), False),
        ((False, False), False),
        ((True, None), None),
        ((None, None), None),
    ],
)
def test_a_join_has_state_when_both_sides_are_streams(
    streams: tuple[bool | None, ...], stateful: bool | None
) -> None:
    assert JoinOperator(streams=streams).stateful is stateful


@pytest.mark.parametrize(("stream", "stateful"), [(True, None), (None, None), (False, False)])
def test_what_an_unknown_operator_keeps_is_unknown(stream: bool | None, stateful: bool | None) -> None:
    assert Operator("unknown", streams=(stream,)).stateful is stateful


@pytest.mark.parametrize(
    ("operator", "kind"),
    [
        (AggregateOperator(), "aggregate"),
        (DeduplicateOperator(), "deduplicate"),
        (JoinOperator(), "join"),
        (WatermarkOperator(), "watermark"),
    ],
)
def test_operators_with_more_to_tell_have_their_kind(operator: Operator, kind: str) -> None:
    assert operator.kind == kind


# Walking


def test_walk_goes_from_the_output_to_the_inputs() -> None:
    first = Operator("watermark")
    second = Operator("filter", inputs=(first,))
    third = Operator("sort", inputs=(second,))

    assert list(walk([third])) == [third, second, first]
    assert list(third.below()) == [second, first]
    assert list(first.below()) == []
    assert list(walk([])) == []


def test_walk_takes_inputs_in_their_order_and_each_operator_once() -> None:
    shared = Operator("watermark")
    left, right = Operator("filter", inputs=(shared,)), Operator("sort", inputs=(shared,))
    join = Operator("join", inputs=(left, right))

    assert list(walk([join])) == [join, left, shared, right]
    assert list(walk([left, right, left])) == [left, shared, right]


def diamonds(levels: int) -> Facts:
    """A pipeline that parts in two and comes together again, over and over."""
    facts = STREAM.after(Operator("watermark"))
    for _ in range(levels):
        branches = [facts.after(Operator("filter")), facts.after(Operator("repartition"))]
        facts = combined(Operator("union"), branches)
    return facts


@pytest.mark.parametrize("levels", [400, 1600])
def test_two_to_the_power_of_n_paths_are_walked_in_linear_time(levels: int) -> None:
    facts = diamonds(levels)

    # 2 ** 400 paths: only a walk that goes through each operator once comes to an end.
    assert sum(1 for _ in facts.all_operators()) == 3 * levels + 1
    assert calls_of(lambda: list(facts.all_operators())) < 12 * (3 * levels + 1)


def test_a_long_chain_is_walked_without_recursion() -> None:
    facts = STREAM
    for _ in range(10_000):
        facts = facts.after(Operator("filter"))

    assert sum(1 for _ in facts.all_operators()) == 10_000


# Facts


def test_an_operator_behind_facts_knows_what_is_before_it() -> None:
    facts = STREAM.after(Operator("watermark", "column")).after(Operator("sort"))

    sort, mark = facts.all_operators()
    assert facts.operators == (sort,)
    assert sort.inputs == (mark,)
    assert mark.inputs == ()
    assert (sort.streams, mark.streams) == ((True,), (True,))
    assert mark.option == "column"


def test_an_operator_keeps_the_inputs_and_streams_that_it_has() -> None:
    before = Operator("watermark")
    made = Operator("join", inputs=(before,), streams=(True, False))

    (operator,) = STATIC.after(made).operators
    assert operator.inputs == (before,)
    assert operator.streams == (True, False)


def test_facts_behind_an_operator_are_otherwise_the_same() -> None:
    facts = STREAM.after(Operator("filter"))

    assert (facts.streaming, facts.columns, facts.bounded) == (True, STREAM.columns, False)
    assert STREAM.operators == ()


def test_facts_are_equal_when_what_is_known_of_the_rows_is() -> None:
    assert STREAM.after(Operator("filter")) == STREAM
    assert STREAM != STATIC


@pytest.mark.parametrize(
    ("first", "second", "streaming"),
    [
        (True, True, True),
        (True, False, True),
        (True, None, True),
        (False, False, False),
        (False, None, None),
        (None, None, None),
    ],
)
def test_merged_facts_stream_when_one_does(
    first: bool | None, second: bool | None, streaming: bool | None
) -> None:
    assert merged([Facts(streaming=first), Facts(streaming=second)]).streaming is streaming
    assert merged([Facts(streaming=second), Facts(streaming=first)]).streaming is streaming


@pytest.mark.parametrize(
    ("first", "second", "bounded"),
    [(True, True, True), (True, False, False), (None, False, False), (True, None, None), (None, None, None)],
)
def test_merged_facts_end_when_all_do(first: bool | None, second: bool | None, bounded: bool | None) -> None:
    assert merged([Facts(bounded=first), Facts(bounded=second)]).bounded is bounded


def test_merged_facts_have_the_operators_of_all_inputs_each_once() -> None:
    shared = STREAM.after(Operator("watermark"))
    left, right = shared.after(Operator("filter")), shared

    facts = merged([left, right, left])
    assert facts.columns is None
    assert [operator.kind for operator in facts.operators] == ["filter", "watermark"]
    assert kinds(facts) == ["filter", "watermark"]


def test_nothing_merged_is_a_static_relation_that_ends() -> None:
    assert merged([]) == Facts(streaming=False, bounded=True)


def test_an_operator_over_several_inputs_knows_which_are_streams() -> None:
    left, right = STREAM.after(Operator("watermark")), STATIC.after(Operator("filter"))

    facts = combined(JoinOperator(how="left"), [left, right])
    (join,) = facts.operators
    assert isinstance(join, JoinOperator)
    assert join.how == "left"
    assert join.streams == (True, False)
    assert [operator.kind for operator in join.inputs] == ["watermark", "filter"]
    assert (facts.streaming, facts.columns, facts.bounded) == (True, None, False)


def test_an_input_taken_twice_is_two_operands_and_one_operator_before() -> None:
    marked = STREAM.after(Operator("watermark"))

    (union,) = combined(Operator("union"), [marked, marked]).operators
    assert union.streams == (True, True)
    assert len(union.inputs) == 1


def test_the_operator_of_a_gem_that_cant_tell_is_unknown() -> None:
    assert UNKNOWN_OPERATOR.kind == "unknown"
    assert combined(UNKNOWN_OPERATOR, [STREAM]).operators[0].stateful is None
    assert combined(UNKNOWN_OPERATOR, [STATIC]).operators[0].stateful is False


# Event time


def test_event_time_is_the_columns_that_carry_a_watermark() -> None:
    at, seen = Column("at", "timestamp", "1 minute"), Column("seen", "timestamp")

    assert Facts(columns=(at, seen)).event_time == (at,)
    assert Facts(columns=()).event_time == ()
    assert UNKNOWN.event_time is None


@pytest.mark.parametrize(
    ("delays", "watermarked"),
    [
        ((), False),
        ((None,), False),
        (("1 minute",), True),
        ((None, "0 seconds"), True),
        ((UNKNOWN_DELAY,), None),
        ((UNKNOWN_DELAY, None), None),
        ((UNKNOWN_DELAY, "1 minute"), True),
    ],
)
def test_facts_are_watermarked_when_a_column_certainly_is(
    delays: tuple[str | None, ...], watermarked: bool | None
) -> None:
    columns = tuple(Column(f"c{n}", "timestamp", delay) for n, delay in enumerate(delays))

    assert Facts(columns=columns).watermarked is watermarked


def test_whether_unknown_columns_are_watermarked_is_unknown() -> None:
    assert UNKNOWN.watermarked is None


def test_columns_are_found_without_case() -> None:
    at = Column("At", "timestamp")

    assert Facts(columns=(Column("id"), at)).column("AT") is at
    assert Facts(columns=(at,)).column("id") is None
    assert UNKNOWN.column("at") is None


def test_columns_can_be_replaced_and_made_unknown() -> None:
    assert STREAM.with_columns([Column("id")]).columns == (Column("id"),)
    assert STREAM.with_columns(iter([Column("id")])).columns == (Column("id"),)
    assert STREAM.with_columns(None).columns is None
    assert STREAM.with_columns(None).streaming is True


def test_facts_that_are_called_by_a_name_give_it_to_their_columns() -> None:
    facts = STREAM.called("orders")

    assert facts.columns == (replace(Column("at", "timestamp"), qualifier="orders"),)
    assert UNKNOWN.called("orders") == UNKNOWN


# Ancestry


def chain(*kinds: OperatorKind) -> list[Operator]:
    """Operators behind one another, the first one nearest to the source."""
    made: list[Operator] = []
    for kind in kinds:
        made.append(Operator(kind, inputs=tuple(made[-1:])))
    return made


def ancestry_of(facts: Facts) -> Ancestry:
    return Ancestry(facts.operators)


def is_mark(operator: Operator) -> bool:
    return operator.kind == "watermark"


def test_all_operators_of_all_queries_are_there_once_and_behind_their_inputs() -> None:
    mark, plain, sort = chain("watermark", "filter", "sort")
    other = Operator("limit", inputs=(plain,))

    found = Ancestry([sort, other, plain]).operators
    assert len(found) == 4
    assert set(found) == {mark, plain, sort, other}
    for operator in found:
        assert all(found.index(before) < found.index(operator) for before in operator.inputs)
    assert Ancestry([]).operators == []


def test_what_comes_before_what() -> None:
    mark, plain, sort = chain("watermark", "filter", "sort")
    other = Operator("limit", inputs=(mark,))
    ancestry = Ancestry([sort, other])

    before = {(one.kind, two.kind) for one in ancestry.operators for two in ancestry.operators
              if ancestry.is_before(one, two)}  # fmt: skip
    assert before == {
        ("watermark", "filter"),
        ("watermark", "sort"),
        ("filter", "sort"),
        ("watermark", "limit"),
    }
    assert ancestry.before(sort, [sort, plain, other, mark]) == [plain, mark]
    assert ancestry.before(mark, [mark, plain]) == []


def test_before_a_join_is_what_is_before_either_side() -> None:
    left, right = Operator("watermark"), Operator("watermark")
    join = Operator("join", inputs=(Operator("filter", inputs=(left,)), right))
    ancestry = Ancestry([join])

    assert ancestry.before(join, [right, left]) == [right, left]
    assert not ancestry.is_before(left, right)
    assert not ancestry.is_before(join, join)


def test_the_nearest_one_that_is_wanted() -> None:
    first, plain, second, sort = chain("watermark", "filter", "watermark", "sort")
    found = Ancestry([sort]).nearest(is_mark)

    assert id(first) not in found
    assert found[id(plain)] is first
    assert found[id(second)] is first
    assert found[id(sort)] is second


def test_nothing_is_found_beyond_what_stops_the_search() -> None:
    mark, query, plain, sort = chain("watermark", "cte", "filter", "sort")
    ancestry = Ancestry([sort])
    found = ancestry.nearest(is_mark, lambda operator: operator.kind == "cte")

    assert found == {id(query): mark}
    assert ancestry.nearest(is_mark)[id(sort)] is mark
    # What stops the search isn't found itself either.
    assert ancestry.nearest(lambda operator: operator is query, lambda operator: operator is query) == {}
    assert id(plain) not in found


def test_of_two_sides_the_first_one_that_has_it_is_told() -> None:
    left, right = Operator("watermark"), Operator("watermark")
    plain = Operator("filter")

    both = Operator("union", inputs=(left, right))
    assert Ancestry([both]).nearest(is_mark)[id(both)] is left
    one = Operator("union", inputs=(plain, right))
    assert Ancestry([one]).nearest(is_mark)[id(one)] is right
    stopped = Operator("union", inputs=(Operator("cte", inputs=(left,)), right))
    found = Ancestry([stopped]).nearest(is_mark, lambda operator: operator.kind == "cte")
    assert found[id(stopped)] is right


@settings(deadline=None)
@given(
    edges=st.lists(st.lists(st.integers(0, 30), max_size=3), min_size=1, max_size=14),
    wanted=st.sets(st.integers(0, 13)),
    stops=st.sets(st.integers(0, 13)),
)
def test_ancestry_is_what_walking_finds(edges: list[list[int]], wanted: set[int], stops: set[int]) -> None:
    made: list[Operator] = []
    for before in edges:
        inputs = dict.fromkeys(made[n % len(made)] for n in before) if made else {}
        made.append(Operator("filter", inputs=tuple(inputs)))
    number = {id(operator): n for n, operator in enumerate(made)}
    ancestry = Ancestry(made)
    found = ancestry.nearest(lambda o: number[id(o)] in wanted, lambda o: number[id(o)] in stops)

    assert len(ancestry.operators) == len(made)
    for operator in made:
        below = list(operator.below())
        assert ancestry.before(operator, made) == [other for other in made if other in below]
        assert [other for other in made if ancestry.is_before(other, operator)] == [
            other for other in made if other in below
        ]
        reached, waiting = set(), [operator]
        while waiting:
            inputs_ = [o for o in waiting.pop().inputs if number[id(o)] not in stops]
            reached |= {id(o) for o in inputs_}
            waiting += [o for o in inputs_ if number[id(o)] not in wanted]
        candidates = {n for n in reached if number[n] in wanted}
        nearest = found.get(id(operator))
        assert (nearest is None) == (not candidates)
        assert nearest is None or id(nearest) in candidates


def ask_of_each(facts: Facts) -> None:
    """Ask everything about every operator."""
    ancestry = ancestry_of(facts)
    marks = [operator for operator in ancestry.operators if is_mark(operator)]
    ancestry.nearest(is_mark, lambda operator: operator.kind == "cte")
    for operator in ancestry.operators:
        assert ancestry.is_before(marks[0], operator) == (operator is not marks[0])


def test_two_to_the_power_of_n_paths_are_no_more_than_their_operators() -> None:
    # 2 ** 600 paths.
    facts = diamonds(600)

    ancestry = ancestry_of(facts)
    assert len(ancestry.operators) == 1801
    (mark,) = (operator for operator in ancestry.operators if is_mark(operator))
    assert ancestry.before(facts.operators[0], [mark]) == [mark]
    assert ancestry.nearest(is_mark)[id(facts.operators[0])] is mark
    assert calls_of(lambda: ask_of_each(facts)) < 1801 * 40


def test_questions_about_a_chain_of_two_thousand_are_as_few_for_each() -> None:
    facts = STREAM.after(Operator("watermark"))
    for n in range(1999):
        facts = facts.after(Operator("watermark" if n % 5 == 0 else "filter"))

    assert len(ancestry_of(facts).operators) == 2000
    assert calls_of(lambda: ask_of_each(facts)) < 2000 * 40


# Event times


def marked(*columns: tuple[str, str | None]) -> list[Column]:
    return [Column(name, "timestamp", "1 minute", qualifier=qualifier) for name, qualifier in columns]


@pytest.mark.parametrize(
    ("columns", "count"),
    [
        ([], 0),
        ([("at", None)], 1),
        ([("at", None), ("AT", None)], 1),
        ([("at", "a"), ("at", "a")], 1),
        ([("at", "a"), ("at", "b")], 2),
        ([("at", None), ("at", "b")], 1),
        ([("at", "a"), ("at", "b"), ("at", None)], 2),
        ([("at", None), ("seen", None)], 2),
    ],
)
def test_event_times_that_are_certain_to_be_different_ones(
    columns: list[tuple[str, str | None]], count: int
) -> None:
    assert len(event_times(marked(*columns))) == count
    unknown = [replace(column, delay=UNKNOWN_DELAY) for column in marked(*columns)]
    assert event_times([*unknown, Column("id", "bigint")]) == []


def test_columns_tell_what_they_were_when_they_entered_an_operator() -> None:
    columns = (*marked(("at", "a"), ("at", "b")), Column("id", "bigint"))
    facts, times = entering(Facts(True, columns), lambda column: column.qualifier == "a")

    assert [(time.name, time.needed) for time in times] == [("a.at", True), ("b.at", False)]
    assert facts.columns == columns, "it doesn't count when columns are compared"
    assert [column.entered for column in facts.columns or ()] == [times[:1], times[1:], ()]
    again, later = entering(facts.called("c").with_columns(marked(("at", "c"))), lambda _: True)
    assert (again.columns, later) == (tuple(marked(("at", "c"))), ())
    called = facts.called("c").columns or ()
    assert [column.entered for column in called] == [times[:1], times[1:], ()]


@pytest.mark.parametrize("streaming", [False, None])
def test_only_a_stream_has_event_times_for_certain(streaming: bool | None) -> None:
    facts = Facts(streaming, tuple(marked(("at", None), ("seen", None))))
    assert entering(facts, lambda _: True) == (facts, ())
    assert entering(replace(facts, streaming=True, columns=None), lambda _: True)[1] == ()
