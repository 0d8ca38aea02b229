"""The tests of what a transform says of pipelines that change: of other options, and of edits before it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, cast, get_args, get_origin

import pytest

from gem_bundle.changes.reach import local_taint, other_state
from gem_bundle.changes.rules.options import meaning_of
from gem_bundle.lineage import column_keys
from gem_bundle.testing.conformance.inputs import Folder, facts_of
from gem_bundle.testing.conformance.streams import drained_rows, rows_of
from gem_bundle.testing.conformance.suite import GemConformance, applies, fail_for, refusing
from gem_bundle.testing.conformance.verdict import refusals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from gem_bundle.gem import Gem
    from gem_bundle.lineage import Lineage
    from gem_bundle.semantics import OutputMode
    from gem_bundle.testing.conformance.inputs import Given

    Rows = Sequence[Mapping[str, Any]]

_MODES: tuple[OutputMode, ...] = ("append", "update")
_EXAMPLES = 1
_SAID = {
    "continues": "no row is different for it",
    "from_now_on": "rows from now on go by the new value, and nothing else is different",
    "refused": "Spark refuses to go on",
}


class _Edit(NamedTuple):
    option: str
    value: Any


def _has_edits(suite: type[GemConformance], gem: Gem) -> bool:  # noqa: ARG001 (the shape of a condition)
    return next(cast("type[ChangeTests]", suite).edited(), None) is not None


def _tells_lineage(suite: type[GemConformance], gem: Gem) -> bool:  # noqa: ARG001
    from gem_bundle.gem import Transform

    return suite.gem.lineage is not Transform.lineage  # type: ignore[attr-defined]


class ChangeTests(GemConformance):
    """What a transform says of changes is true.

    Attributes:
        edits: Other values of options, each with the name of the option. Booleans and options with named
            values are tried without being named here.
        untried: Options with values that can't be tried with a stream that ends, each with the reason.
    """

    edits: ClassVar[Sequence[tuple[str, Any]]] = ()
    untried: ClassVar[Sequence[tuple[str, Any, str]]] = ()
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
    @applies(_has_edits)
    def test_says_what_another_value_does(self) -> None:
        """What `change` and `Field(change=…)` say is true of a query that goes on with another value."""
        fail_for([problem for edit in self.edited() if (problem := self._wrong(edit))])

    @classmethod
    def edited(cls) -> Iterator[_Edit]:
        """The edits: one option each, of which the new value is valid."""
        sample = dict(cls.sample())
        options = cls.gem.options_type
        given = [*cls.edits]
        for name, field in options.model_fields.items():
            kind = field.annotation
            if kind is bool:
                given += [(name, True), (name, False)]
            elif get_origin(kind) is Literal:
                given += [(name, value) for value in get_args(kind)]
        known = {options.canonical(key) or key: value for key, value in sample.items()}
        for name, value in given:
            if any((name, value) == tuple(left) for *left, _ in cls.untried):
                continue
            try:
                before, after = options.model_validate(known), options.model_validate({**known, name: value})
            except ValueError:
                continue  # not without another option beside it
            if getattr(before, name) != getattr(after, name):
                yield _Edit(name, value)

    def _wrong(self, edit: _Edit) -> str:
        """What is untrue of what the gem says of an edit; empty when nothing is."""
        old = self.live()
        provided = self._provided or {}
        given = {type(old.options).canonical(key) or key: value for key, value in provided.items()}
        place = self.folder.with_name(f"edit_{edit.option}_{len(self._tried)}")
        self._tried.append(edit.option)
        folders = {name: Folder(place / name, given.schema) for name, given in self.inputs.items()}
        for name, folder in folders.items():
            folder.add(self.inputs[name].rows)
        inputs = self._streams(folders)
        facts = [facts_of(df) for df in inputs]
        new = self.made({**given, edit.option: edit.value})
        mode = self._mode(old, new, facts)
        if mode is None:
            return ""
        said = _verdict(old, new, edit.option, facts)
        for output in new.outputs() or ("",):
            truth = self._truth(old, new, output, mode, place, folders)
            if truth and _is_untrue(said, truth):
                return (
                    f"of `{edit.option}`, which was {getattr(old.options, edit.option)!r} and is "
                    f"{edit.value!r}, the gem says `{said}`: {_SAID[said]}. In Spark {truth}"
                )
        return ""

    def _truth(
        self, old: Any, new: Any, output: str, mode: OutputMode, place: Path, folders: Mapping[str, Folder]
    ) -> str:
        """What becomes of rows, in words; empty where that can't be told."""
        kept, scratch = place / f"kept_{output}", place / f"scratch_{output}"

        def run(gem: Any, checkpoint: Path) -> Counter[str]:
            found = gem.apply(*self._streams(folders))
            df: DataFrame = found[output] if output else found
            names = df.columns
            rows = drained_rows(df, checkpoint, mode)
            return Counter(
                str([row.get(name) for name in sorted(names)]) + str(sorted(names)) for row in rows
            )

        try:
            first, before = run(old, kept), run(new, scratch)
        except Exception:  # noqa: BLE001 (what runs by itself isn't asked here)
            return ""
        for name, folder in folders.items():
            folder.add(self.inputs[name].rows)
        try:
            second = run(new, kept)
        except Exception:  # noqa: BLE001 (whatever Spark says, it doesn't go on)
            return _REFUSED
        after = run(new, scratch)
        if first + second == before + after:
            return _CONTINUES
        return _FROM_NOW_ON if second == after else _WRONG

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


_CONTINUES = "no row is different"
_FROM_NOW_ON = "the rows of the old value would have been others by the new one"
_WRONG = "what comes out is neither what the old value gives nor what the new one does"
_REFUSED = "the query fails"


def _is_untrue(said: str, truth: str) -> bool:
    if said == "continues":
        return truth != _CONTINUES
    if said == "from_now_on":
        return truth in {_WRONG, _REFUSED}
    return said == "refused" and truth != _REFUSED


def _verdict(old: Any, new: Any, option: str, facts: list[Any]) -> str:
    """What a plan makes of what the gem says, where nothing else keeps state."""
    stateful = any(operator.stateful is not False for operator in new.infer(*facts).all_operators())
    before = old.options.model_dump(mode="json")[option]
    change, _ = meaning_of(new, option, before, stateful=stateful)
    if change.effect not in {"from_now_on", "mixed"}:
        return change.effect
    lineages: tuple[Lineage | None, Lineage | None] = old.lineage(*facts), new.lineage(*facts)
    if new.outputs():
        lineages = (None, None)
    if change.effect == "mixed" and stateful and other_state(*lineages):
        return "mixed"
    return "from_now_on" if local_taint(*lineages) else "continues"


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
