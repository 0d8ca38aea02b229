"""The test of what a source says of other options: it is read on with them from a checkpoint."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest

from gem_bundle.changes.rules.options import meaning_of
from gem_bundle.testing.conformance.edits import (
    AGAIN,
    CONTINUES,
    FROM_NOW_ON,
    MIXED,
    REFUSED,
    SKIPPED,
    Edit,
    EditTests,
    contradiction,
    has_edits,
    is_untrue,
)
from gem_bundle.testing.conformance.feeding import Feeding, feeds, reads
from gem_bundle.testing.conformance.streams import counted, drained_rows, read_stream
from gem_bundle.testing.conformance.suite import applies, fail_for

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

    from gem_bundle.gem import Gem, Source
    from gem_bundle.testing.conformance.suite import GemConformance


class _Begun(NamedTuple):
    """An edit that runs by itself, with the rows that it gives of what there was first."""

    edit: Edit
    value: Any
    options: dict[str, Any]
    scratch: Path
    before: Counter[str]


def _goes_on(suite: type[GemConformance], gem: Gem) -> bool:
    """Whether there is an edit to try, and a stream that comes to an end and goes on by its checkpoint."""
    semantics = cast("Source", gem).semantics
    ends = semantics.backlog and not semantics.only_new and semantics.replayable
    return ends and feeds(suite) and reads(gem, streaming=True) and has_edits(suite, gem)


class SourceChangeTests(EditTests, Feeding):
    """What a source says of changes is true."""

    @pytest.mark.spark
    @applies(_goes_on)
    def test_says_what_another_value_does(self) -> None:
        """What `change` and `Field(change=…)` say is true of a query that goes on with another value."""
        given = self.live()
        kept = self.folder.with_name("kept")
        self._given(1)
        first = self._rows(given, kept)
        begun = [found for number, edit in enumerate(self.tried()) if (found := self._begun(edit, number))]
        self._given(2)
        unchanged = self.folder.with_name("unchanged")
        shutil.copytree(kept, unchanged)
        same = self._rows(self.live(), unchanged)
        fail_for([problem for each in begun if (problem := self._wrong(each, kept, first, same))])

    def _begun(self, edit: Edit, number: int) -> _Begun | None:
        """What an edit gives from the beginning; None where it can't be read by itself."""
        value = edit.of(self)
        options = {**self._given_options(), edit.option: value}
        scratch = self.folder.with_name(f"scratch_{number}_{edit.option}")
        if not edit.is_one(self, options):
            return None
        try:
            return _Begun(edit, value, options, scratch, self._rows(self.made(options), scratch))
        except Exception:  # noqa: BLE001 (what is read by itself isn't asked here)
            return None

    def _wrong(self, begun: _Begun, kept: Path, first: Counter[str], same: Counter[str]) -> str:
        """What is untrue of what the gem says of an edit; empty when nothing is."""
        option = begun.edit.option
        old, new = self.live(), self.made(begun.options)
        said, known = meaning_of(new, option, old.options.model_dump(mode="json")[option], stateful=False)
        truth = self._truth(begun, kept, first, same)
        if not is_untrue(said.effect, truth):
            return ""
        was = getattr(old.options, option)
        return contradiction(begun.edit, was, begun.value, said.effect, truth, known=known)

    def _truth(self, begun: _Begun, kept: Path, first: Counter[str], same: Counter[str]) -> str:
        """What becomes of rows that came since, in words."""
        checkpoint = begun.scratch.with_name(f"{begun.scratch.name}_kept")
        shutil.copytree(kept, checkpoint)
        try:
            second = self._rows(self.made(begun.options), checkpoint)
        except Exception:  # noqa: BLE001 (whatever Spark says, it doesn't go on)
            return REFUSED
        if second == same:
            return CONTINUES
        after = self._rows(self.made(begun.options), begun.scratch)
        missing, more = after - second, second - after
        # What was passed over by the old value, and comes by the new one, has come for the first time.
        again = more - (begun.before - first)
        if missing:
            return MIXED if again else SKIPPED
        return AGAIN if again else FROM_NOW_ON

    def _rows(self, source: Any, checkpoint: Path) -> Counter[str]:
        return counted(drained_rows(read_stream(source, self.spark), checkpoint))
