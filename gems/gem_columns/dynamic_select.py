"""The transform `dynamic_select`: the columns that a rule chooses."""

from typing import TYPE_CHECKING

from gem_bundle import Facts, Finding, GemError, Lineage, Transform
from gem_bundle.expressions import backquoted, check_expression, missing_names, project
from gem_columns.choosing import ChoiceOptions, kinds_known, kinds_of
from gem_columns.select import projected

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame


class DynamicSelectOptions(ChoiceOptions):
    """Options of the transform `dynamic_select`."""


class DynamicSelect(Transform[DynamicSelectOptions]):
    """Keep the columns that a rule chooses by name, pattern or type; all others are gone.

    All that is said has to be true of a column. The order stays, and event time stays event time. Names are
    taken as they stand, without backquotes.

    In visual tools: DynamicSelect.
    """

    example = {"types": ["string", "number"], "except_matching": "^_"}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The chosen columns.

        Raises:
            GemError: When none is chosen.
        """
        from pyspark.sql.functions import col

        chosen = self._chosen(kinds_of(inputs[0]))
        if not chosen:
            raise GemError("GB205", _NONE, _WIDER)
        return inputs[0].select(*(col(backquoted(name)) for name in chosen))

    def infer(self, *inputs: Facts) -> Facts:
        """The chosen columns, where that can be told."""
        (facts,) = inputs
        chosen = self._known(facts)
        return facts.with_columns(None if chosen is None else project(list(map(backquoted, chosen)), facts))

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """The chosen columns as they are."""
        (facts,) = inputs
        chosen = self._known(facts)
        return None if chosen is None else projected({name: backquoted(name) for name in chosen}, facts)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The names exist, and a column is chosen."""
        (facts,) = inputs
        yield from missing_names(self.options.columns or (), facts, "columns")
        yield from missing_names(self.options.except_columns, facts, "except_columns")
        chosen = self._known(facts)
        if chosen is not None and not chosen:
            yield Finding("GB205", _NONE, _WIDER)
        for name in dict.fromkeys(map(str.lower, chosen or ())):
            yield from check_expression(backquoted(name), facts, "columns")

    def _known(self, facts: Facts) -> list[str] | None:
        known = kinds_known(facts)
        if known is None or any(self.options.chooses(*column) is None for column in known):
            return None
        return self._chosen(known)

    def _chosen(self, columns: "Sequence[tuple[str, str | None]]") -> list[str]:
        return [name for name, kind in columns if self.options.chooses(name, kind)]


_NONE = "no column is chosen, so no row would have any"
_WIDER = "Say less of them: a column has to meet all that is said."
