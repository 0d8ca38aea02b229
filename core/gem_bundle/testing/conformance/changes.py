"""The tests of what a transform says of pipelines that change: of other options, and of edits before it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, cast

import pytest

from gem_bundle.changes.reach import local_taint, other_state
from gem_bundle.changes.rules.options import meaning_of
from gem_bundle.lineage import column_keys
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
from gem_bundle.testing.conformance.inputs import Folder, facts_of
from gem_bundle.testing.conformance.streams import counted, drained_rows, rows_of
from gem_bundle.testing.conformance.suite import applies, fail_for, refusing
from gem_bundle.testing.conformance.verdict import refusals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from gem_bundle.gem import Gem
    from gem_bundle.lineage import Lineage
    from gem_bundle.options import Effect
    from gem_bundle.semantics import OutputMode
    from gem_bundle.testing.conformance.inputs import Given
    from gem_bundle.testing.conformance.suite import GemConformance

    Rows = Sequence[Mapping[str, Any]]

_MODES: tuple[OutputMode, ...] = ("append", "update")


def _tells_lineage(suite: type[GemConformance], gem: Gem) -> bool:  # noqa: ARG001
    from gem_bundle.gem import Transform

    return suite.gem.lineage is not Transform.lineage  # type: ignore[attr-defined]


class ChangeTests(EditTests):
    """What a transform says of changes is true."""

    inputs: ClassVar[Mapping[str, Given]]

    @pytest.mark.spark
    @applies(_tells_lineage)
    def test_the_lineage_names_what_counts(self) -> None:
        """A column that nothing is made of, as `lineage` says, can have any values."""
        gem = self.live()
        tables = self._filled("as_given", {})
        if refusing(gem, *map(facts_of, tables)):
            return  # Spark takes no static inputs
        facts = [facts_of(df) for df in tables]
        lineage = gem.lineage(*facts)
        names = column_keys(gem.infer(*facts).columns)
        if lineage is None or names is None or gem.outputs():
            return
        before = rows_of(gem.apply(*tables))
        problems: list[str] = []
        for position, name in enumerate(self.inputs):
            for column in facts[position].columns or ():
                use = f"{position}:{column.name.lower()}"
                changed = self._filled(f"other_{name}_{column.name}", {name: column.name})
                after = rows_of(gem.apply(*changed))
                problems += _problems(lineage, names, use, before, after)
        fail_for(problems)

    @pytest.mark.spark
    @applies(has_edits)
    def test_says_what_another_value_does(self) -> None:
        """What `change` and `Field(change=…)` say is true of a query that goes on with another value."""
        fail_for([problem for edit in self.tried() if (problem := self._wrong(edit))])

    def _wrong(self, edit: Edit) -> str:
        """What is untrue of what the gem says of an edit; empty when nothing is."""
        old = self.live()
        place = self.folder.with_name(f"edit_{edit.option}_{len(self._tried)}")
        self._tried.append(edit.option)
        folders = {name: Folder(place / name, given.schema) for name, given in self.inputs.items()}
        for name, folder in folders.items():
            folder.add(self.inputs[name].rows)
        inputs = self._streams(folders)
        facts = [facts_of(df) for df in inputs]
        value = edit.of(self)
        new = self.made({**self._given_options(), edit.option: value})
        mode = self._mode(old, new, facts)
        if mode is None:
            return ""
        said, known = _verdict(old, new, edit.option, facts)
        for output in new.outputs() or ("",):
            truth = self._truth(old, new, output, mode, place, folders)
            # That state of another shape is refused a plan says by the shape, and not by the option.
            if truth and said != "mixed" and is_untrue(said, truth):
                return contradiction(edit, getattr(old.options, edit.option), value, said, truth, known=known)
        return ""

    def _truth(
        self, old: Any, new: Any, output: str, mode: OutputMode, place: Path, folders: Mapping[str, Folder]
    ) -> str:
        """What becomes of rows, in words; empty where that can't be told."""
        kept, scratch = place / f"kept_{output}", place / f"scratch_{output}"

        def run(gem: Any, checkpoint: Path) -> Counter[str]:
            found = gem.apply(*self._streams(folders))
            df: DataFrame = found[output] if output else found
            return counted(drained_rows(df, checkpoint, mode))

        try:
            first, before = run(old, kept), run(new, scratch)
        except Exception:  # noqa: BLE001 (what runs by itself isn't asked here)
            return ""
        for name, folder in folders.items():
            folder.add(self.inputs[name].rows)
        try:
            second = run(new, kept)
        except Exception:  # noqa: BLE001 (whatever Spark says, it doesn't go on)
            return REFUSED
        after = run(new, scratch)
        if first + second == before + after:
            return CONTINUES
        return FROM_NOW_ON if second == after else MIXED

    def _mode(self, old: Any, new: Any, facts: list[Any]) -> OutputMode | None:
        """An output mode in which both run as streams; None where none is."""
        for mode in _MODES:
            if all(not refusals(gem.infer(*facts), mode) and not refusing(gem, *facts) for gem in (old, new)):
                return mode
        return None

    def _streams(self, folders: Mapping[str, Folder]) -> list[DataFrame]:
        found = []
        for name, folder in folders.items():
            df = folder.stream(self.spark, name)
            event_time = self.inputs[name].event_time
            found.append(df.withWatermark(*event_time) if event_time else df)
        return found

    def _filled(self, place: str, turned: Mapping[str, str]) -> list[DataFrame]:
        """The inputs as static relations, where one has other values in a column."""
        found = []
        for name, given in self.inputs.items():
            folder = Folder(self.folder.with_name(f"{place}_{name}"), given.schema)
            rows = [dict(row) for row in given.rows]
            column = turned.get(name)
            if column is not None:
                values = [row.get(column) for row in rows]
                for row, value in zip(rows, [*values[1:], *values[:1]], strict=True):
                    row[column] = value
            folder.add(rows)
            found.append(folder.table(self.spark))
        return found

    @property
    def _tried(self) -> list[str]:
        return cast("list[str]", self.__dict__.setdefault("_tried_options", []))


def _verdict(old: Any, new: Any, option: str, facts: list[Any]) -> tuple[Effect, bool]:
    """What a plan makes of what the gem says, where nothing else keeps state, and whether the gem says it."""
    stateful = any(operator.stateful is not False for operator in new.infer(*facts).all_operators())
    before = old.options.model_dump(mode="json")[option]
    change, known = meaning_of(new, option, before, stateful=stateful)
    if change.effect not in {"from_now_on", "mixed"}:
        return change.effect, known
    lineages: tuple[Lineage | None, Lineage | None] = old.lineage(*facts), new.lineage(*facts)
    if new.outputs():
        lineages = (None, None)
    if change.effect == "mixed" and stateful and other_state(*lineages):
        return "mixed", known
    return "from_now_on" if local_taint(*lineages) else "continues", known


def _problems(lineage: Lineage, names: list[str], use: str, before: Rows, after: Rows) -> Iterator[str]:
    """What is different for a column of which `lineage` says that nothing is."""
    deciding = [lineage.rows, *(lineage.kept.keys if lineage.kept is not None else ())]
    if any(made.uses is None or use in made.uses for made in deciding):
        return
    column = use.partition(":")[2]
    if len(before) != len(after):
        yield (
            f"`lineage` says that `{column}` has no say in which rows come out; with other values of it "
            f"there are {len(after)} in place of {len(before)}"
        )
        return
    for name in names:
        made = lineage.columns.get(name)
        if made is None or made.uses is None or use in made.uses:
            continue
        one, other = (Counter(str(_value(row, name)) for row in rows) for rows in (before, after))
        if one != other:
            yield (
                f"`lineage` says that `{name}` isn't made of `{column}`; with other values of that it has "
                "others"
            )


def _value(row: Mapping[str, Any], name: str) -> Any:
    return next((value for key, value in row.items() if key.lower() == name), None)
