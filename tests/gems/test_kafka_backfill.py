"""The part of topics that a backfill reads, without a broker."""

from __future__ import annotations

from typing import Any

import pytest

from gem_bundle import GemError, SourcePart
from gem_kafka.reading import KafkaSourceOptions
from gem_kafka.source import KafkaSource

BEGAN = ((0, ('{"t": {"0": 5}}',)),)


def began(**raw: Any) -> KafkaSource:
    return KafkaSource(
        KafkaSourceOptions.model_validate({"bootstrap_servers": ["nowhere:1"], "subscribe": "t", **raw})
    )


@pytest.mark.parametrize(
    ("before", "now", "option"),
    [
        ({"starting_offsets": "earliest"}, {"starting_offsets": {"t": {0: 5}}}, "starting_offsets"),
        ({"starting_offsets": {"t": {0: 5}}}, {"starting_offsets": {"t": {0: 5}}}, ""),
        ({"starting_timestamp": 5}, {"starting_timestamp": 6}, "starting_timestamp"),
        # More is read than the stream had.
        ({"starting_timestamp": 5}, {"starting_offsets": "earliest"}, ""),
    ],
)
def test_another_beginning_than_that_of_the_stream(
    monkeypatch: pytest.MonkeyPatch, before: dict[str, Any], now: dict[str, Any], option: str
) -> None:
    monkeypatch.setattr("gem_kafka.backfill.first_offsets", lambda *_: ({("t", 0): 0}, {}))
    kept = began(**before).options.model_dump(mode="json")
    part = SourcePart(offset={"t": {"0": 9}}, log=lambda: BEGAN, complete=True, began=kept)
    if not option:
        found = began(**now).for_backfill(part)
        assert found is not None
        assert found.part == 'up to offsets {"t": {"0": 9}}'
        return
    with pytest.raises(GemError, match="the stream began somewhere else") as caught:
        began(**now).for_backfill(part)
    assert (caught.value.code, caught.value.option) == ("GB453", option)


def asked_for(monkeypatch: pytest.MonkeyPatch, first: dict[tuple[str, int], int]) -> list[tuple[str, int]]:
    """Let brokers have records from some offsets on, and else all; gives what they are asked for."""
    asked: list[tuple[str, int]] = []

    def first_offsets(options: Any, partitions: list[tuple[str, int]], since: int | None) -> Any:
        asked.extend(partitions)
        return {of: first.get(of, 0) for of in partitions}, {}

    monkeypatch.setattr("gem_kafka.backfill.first_offsets", first_offsets)
    return asked


@pytest.mark.parametrize("ends", [True, False], ids=["up to there", "of windows"])
@pytest.mark.parametrize("later", [("t", 1), ("u", 0)], ids=["partition", "topic"])
def test_what_came_after_the_stream_had_begun_has_to_be_there_too(
    monkeypatch: pytest.MonkeyPatch, later: tuple[str, int], ends: bool
) -> None:
    reached: dict[str, dict[str, int]] = {"t": {"0": 9}}
    reached.setdefault(later[0], {})[str(later[1])] = 50
    part = SourcePart(offset=reached if ends else None, log=lambda: BEGAN, complete=True, reached=reached)
    source = began(subscribe="t,u", starting_offsets="earliest")
    asked = asked_for(monkeypatch, {})
    assert source.for_backfill(part) is not None
    assert sorted(asked) == [("t", 0), later]
    asked_for(monkeypatch, {later: 40})
    with pytest.raises(
        GemError, match="begins at offset 40 now, and the stream has read from 0 on"
    ) as caught:
        source.for_backfill(part)
    assert caught.value.code == "GB453"


@pytest.mark.parametrize(
    ("first", "former", "what"),
    [
        ('{"t": {"0": 5}, "u": {"0": 0}}', [], "the topic `u`"),
        ('{"t": {"0": 5, "3": 0}}', [], "partition 3 of `t`"),
        ('{"t": {"0": 5}}', [{"subscribe": ["t"]}, {"subscribe": ["t", "u"]}], "the topic `u`"),
        ('{"t": {"0": 5}}', [{"assign": {"t": [0], "u": [0]}}], "the topic `u`"),
        ('{"t": {"0": 5}}', [{"subscribe": {"environment": True}}, {"subscribe": ["t"]}], ""),
    ],
)
def test_topics_that_are_not_read_any_more(
    monkeypatch: pytest.MonkeyPatch, first: str, former: list[dict[str, Any]], what: str
) -> None:
    asked_for(monkeypatch, {})
    part = SourcePart(
        offset={"t": {"0": 9}}, log=lambda: ((0, (first,)),), complete=True, former=tuple(former)
    )
    if not what:
        assert began().for_backfill(part) is not None
        return
    with pytest.raises(GemError) as caught:
        began().for_backfill(part)
    assert (caught.value.code, caught.value.option) == ("GB453", "subscribe")
    assert caught.value.message.startswith(f"the stream has read {what}, and doesn't any more")


def test_a_damaged_beginning_is_none() -> None:
    part = SourcePart(offset={"t": {"0": 9}}, log=lambda: ((0, ("[" * 100_000,)),), complete=True)
    with pytest.raises(GemError, match="doesn't say at which offsets the stream began"):
        began().for_backfill(part)
