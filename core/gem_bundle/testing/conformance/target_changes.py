"""The test of what a target says of other options: it is written on with them from a checkpoint."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, cast

import pytest

from gem_bundle.changes.rules.options import meaning_of
from gem_bundle.changes.rules.targets import taken_over
from gem_bundle.testing.conformance.edits import (
    CONTINUES,
    FROM_NOW_ON,
    MIXED,
    REFUSED,
    Edit,
    EditTests,
    contradiction,
    has_edits,
    is_untrue,
)
from gem_bundle.testing.conformance.inputs import Folder
from gem_bundle.testing.conformance.streams import counted, difference, run_to_the_end, write_stream
from gem_bundle.testing.conformance.suite import applies, fail, fail_for
from gem_bundle.testing.conformance.writing import Writing, is_seen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gem_bundle.gem import Gem, Target
    from gem_bundle.semantics import OutputMode
    from gem_bundle.testing.conformance.suite import GemConformance


# What is found when a checkpoint of another gem is taken over.
_TAKEN = {
    FROM_NOW_ON: "the rows from then on are there, and can be read",
    MIXED: "the rows from then on can't be read, or aren't what is there",
    REFUSED: "the query fails",
}


def _goes_on(suite: type[GemConformance], gem: Gem) -> bool:
    """Whether rows can be seen that streams write which were stopped."""
    semantics = cast("Target", gem).semantics
    return semantics.streaming and semantics.restartable and is_seen(suite)


def _is_edited(suite: type[GemConformance], gem: Gem) -> bool:
    """Whether there is an edit to try besides."""
    return _goes_on(suite, gem) and has_edits(suite, gem)


class TargetChangeTests(EditTests, Writing):
    """What a target says of changes is true."""

    @pytest.mark.spark
    @applies(_is_edited)
    def test_says_what_another_value_does(self) -> None:
        """What `change` and `Field(change=…)` say is true of a query that goes on with another value."""
        place = self.folder.name
        found = [self._wrong(edit, f"{place}_{number}") for number, edit in enumerate(self.tried())]
        fail_for([problem for problem in found if problem])

    @pytest.mark.spark
    @applies(_goes_on)
    def test_takes_over_as_it_says(self) -> None:
        """What `takes_over` says is true of a query that goes on from a checkpoint of another gem."""
        gem, given = self.live(), self._given_rows()
        run_to_the_end(self._stream(given).writeStream.format("noop"), self._checkpoint())
        given.add(self.rows(2))
        said, known = taken_over(gem)
        truth = self._taken(gem, given)
        if is_untrue(said.effect, truth):
            who = "the gem says" if known else "the gem says nothing, which counts as"
            fail(f"of going on from another gem's checkpoint {who} `{said.effect}`. In Spark {_TAKEN[truth]}")

    def _taken(self, gem: Any, given: Folder) -> str:
        """What is there when the gem goes on from a checkpoint of another one, in words."""
        try:
            self._write(gem, given)
        except Exception:  # noqa: BLE001 (whatever Spark says, it doesn't go on)
            return REFUSED
        try:
            return MIXED if difference(self.written_with(gem), self.rows(2)) else FROM_NOW_ON
        except Exception:  # noqa: BLE001 (whatever it is, what is there can't be read any more)
            return MIXED

    def _wrong(self, edit: Edit, place: str) -> str:
        """What is untrue of what the gem says of an edit; empty when nothing is."""
        options = self._begun_anew(f"{place}_scratch", edit)
        if not edit.is_one(self, options):
            return ""
        try:
            first, wanted = self._by_itself(options)
        except Exception:  # noqa: BLE001 (what is written by itself isn't asked here)
            return ""
        options = self._begun_anew(f"{place}_kept", edit)
        old, new = self.live(), self.made(options)
        before = old.options.model_dump(mode="json")[edit.option]
        said, known = meaning_of(new, edit.option, before, stateful=False)
        truth = self._truth(old, new, first, wanted)
        if not is_untrue(said.effect, truth):
            return ""
        was, now = (getattr(gem.options, edit.option) for gem in (old, new))
        return contradiction(edit, was, now, said.effect, truth, known=known)

    def _by_itself(self, options: Mapping[str, Any]) -> tuple[Counter[str], Counter[str]]:
        """What is there when all is written with the new value: after the first rows, and in the end."""
        given, new = self._given_rows(), self.made(options)
        self._write(new, given)
        first = self._seen(new)
        given.add(self.rows(2))
        self._write(self.made(options), given)
        return first, self._seen(new)

    def _truth(self, old: Any, new: Any, first: Counter[str], wanted: Counter[str]) -> str:
        """What is there when the new value goes on from a checkpoint of the old one, in words."""
        given = self._given_rows()
        self._write(old, given)
        before = self._seen(old)
        given.add(self.rows(2))
        try:
            self._write(new, given)
        except Exception:  # noqa: BLE001 (whatever Spark says, it doesn't go on)
            return REFUSED
        elsewhere = old.places() != new.places()
        try:
            after, left = self._seen(new), self._seen(old) if elsewhere else Counter()
        except Exception:  # noqa: BLE001 (whatever it is, what is there can't be read any more)
            return MIXED
        if after == left:
            left = Counter()  # what is said to be another place isn't one
        if after == wanted and not left:
            return CONTINUES
        return FROM_NOW_ON if after + left == before + (wanted - first) else MIXED

    def _begun_anew(self, place: str, edit: Edit) -> dict[str, Any]:
        """The options with another value, of a place of their own that `provide` has made."""
        self.clean_up()
        self._provided = None
        self.folder = self.folder.with_name(place)
        self.folder.mkdir()
        return {**self._given_options(), edit.option: edit.of(self)}

    def _given_rows(self) -> Folder:
        given = Folder(self.folder.with_name(f"{self.folder.name}_given"), self.schema)
        given.add(self.rows(1))
        return given

    def _write(self, gem: Any, given: Folder) -> None:
        mode: OutputMode = "append" if "append" in gem.semantics.output_modes else "update"
        write_stream(gem, self._stream(given), self._checkpoint(), mode, self._name())

    def _checkpoint(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}_checkpoint")

    def _seen(self, gem: Any) -> Counter[str]:
        return counted(self.written_with(gem))
