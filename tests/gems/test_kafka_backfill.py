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
