"""Rejected rows in a check: which nodes have them, who takes them, and what columns they have."""

from __future__ import annotations

from tests.core.streams import check

EXPECT = "  even: {gem: expect, input: ticks, options: {rules: {even: value % 2 = 0}}}\n"
GOOD = "  good: {gem: console, input: even}\n"
BAD = "  bad: {gem: console, input: even.rejected}\n"


# Each query gets the same rows of it, so that the two outputs need no group.
SAME = "sources:\n  ticks: {gem: rate_micro_batch, options: {rows_per_batch: 9}}\n"


def told(piece: str) -> list[tuple[str, str]]:
    return [(found.code, found.message) for found in check(SAME + piece).diagnostics]


def test_rejected_rows_that_nobody_takes_are_a_warning() -> None:
    (found,) = check(f"transforms:\n{EXPECT}targets:\n{GOOD}").diagnostics
    assert (found.code, found.severity, found.node) == ("GB109", "warning", "even")
    assert told(f"transforms:\n{EXPECT}targets:\n{GOOD}{BAD}") == []
    # Who takes nothing but the rejected rows leaves the others out on purpose.
    assert told(f"transforms:\n{EXPECT}targets:\n{BAD}") == []
    # What nobody uses at all is told of by another rule.
    assert [code for code, _ in told(f"transforms:\n{EXPECT}")] == ["GB103"]
    failing = EXPECT.replace("{rules", "{action: fail, rules")
    assert told(f"transforms:\n{failing}targets:\n{GOOD}") == []


def test_an_output_that_a_node_has_not_is_an_error() -> None:
    ((code, message),) = told(
        f"transforms:\n{EXPECT}targets:\n{GOOD}{BAD}{BAD.replace('bad', 'worse').replace('rejected', 'refused')}"
    )
    assert (code, message) == ("GB106", "`worse`: `even` has one output without a name")
    failing = EXPECT.replace("{rules", "{action: fail, rules")
    ((code, message),) = told(f"transforms:\n{failing}targets:\n{BAD}")
    assert (code, message) == ("GB106", "`bad`: with these options `even` rejects no rows")
    filtered = EXPECT.replace("expect", "filter").replace(
        "rules: {even: value % 2 = 0}", "condition: value > 0"
    )
    ((code, message),) = told(f"transforms:\n{filtered}targets:\n{BAD}")
    assert (code, message) == ("GB106", "`bad`: `even` has one output without a name")


def test_the_columns_of_rejected_rows_are_known() -> None:
    def of(column: str) -> list[tuple[str, str]]:
        options = f'{{columns: ["{column}"]}}'
        behind = f"  few: {{gem: select, input: even.rejected, options: {options}}}\n"
        return told(f"transforms:\n{EXPECT}{behind}targets:\n{GOOD}  bad: {{gem: console, input: few}}\n")

    assert of("reasons[0].name = 'even' and rejected_at > event_time") == []
    assert [code for code, _ in of("value > 0")] == ["GB210"]
    assert [code for code, _ in of("reasons[0].nam = 'even'")] == ["GB210"]


def test_event_time_goes_on_into_rejected_rows() -> None:
    timely = "  timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: 1 minute}}\n"
    hours = """
  hours:
    gem: aggregate
    input: even.rejected
    options: {window: {column: event_time, duration: 1 hour}, aggregates: {rows: count(*)}}
"""
    targets = f"targets:\n{GOOD}  bad: {{gem: console, input: hours}}\n"
    marked = EXPECT.replace("input: ticks", "input: timely")
    assert told(f"transforms:\n{timely}{marked}{hours}{targets}") == []
    assert [code for code, _ in told(f"transforms:\n{EXPECT}{hours}{targets}")] == ["GB301"]


def test_the_clock_in_rejected_rows_is_nothing_for_continuous_processing() -> None:
    targets = (
        f"targets:\n{GOOD}  bad: {{gem: console, input: even.rejected, trigger: {{continuous: 1 second}}}}\n"
    )
    assert "GB360" in {code for code, _ in told(f"transforms:\n{EXPECT}{targets}")}


def origin(parsed: str, between: str, rejecting: str = "parted") -> list[tuple[str, str | None]]:
    """What is said of where rejected rows came from, and of which node."""
    from_topic = """
sources:
  messages:
    gem: kafka
    options: {bootstrap_servers: ["localhost:9092"], subscribe: clicks, starting_offsets: earliest}
transforms:
"""
    rules = "options: {rules: {paid: amount > 0}}"
    read = f'  parsed: {{gem: from_json, input: messages, options: {{column: value, schema: "amount int"{parsed}}}}}\n'
    behind = between.partition(":")[0].strip() or "parsed"
    expect = f"  parted: {{gem: expect, input: {behind}, {rules}}}\n"
    targets = f"targets:\n  good: {{gem: console, input: parted}}\n  bad: {{gem: console, input: {rejecting}.rejected}}\n"
    found = check(f"{from_topic}{read}{between}{expect}{targets}").diagnostics
    return [(d.message, d.node) for d in found if d.code == "GB110"]


def test_rejected_rows_that_cannot_tell_their_offset_are_noted() -> None:
    said = "what it rejects won't tell where it came from: `{}` before it leaves out `topic`, `partition`, `offset`"
    left_out = [(f"transform `parted`: {said.format('parsed')}", "parted")]
    assert origin("", "") == left_out
    assert origin("", "  few: {gem: filter, input: parsed, options: {condition: amount < 9}}\n") == left_out
    assert origin(", keep: true", "") == []
    only = "  only: {gem: select, input: parsed, options: {columns: [amount, partition]}}\n"
    assert origin(", keep: true", only) == [(f"transform `parted`: {said.format('only')}", "parted")]
    # What parses the messages has them all.
    assert origin(", rejects: true", "", "parsed") == []
    # A sum of many rows comes from no single one.
    total = "  total: {gem: aggregate, input: parsed, options: {aggregates: {amount: sum(amount)}}}\n"
    assert origin("", total) == []
