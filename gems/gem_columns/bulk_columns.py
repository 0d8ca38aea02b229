"""The transform `bulk_columns`: one rule for the names and values of many columns."""

import re
from typing import TYPE_CHECKING

from pydantic import model_validator

from gem_bundle import Facts, Field, Finding, GemError, Lineage, Transform
from gem_bundle.expressions import backquoted, check_expression, missing_names, project
from gem_bundle.types import Expression
from gem_columns.choosing import ChoiceOptions, kinds_known, kinds_of
from gem_columns.select import projected, with_operators

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

_COLUMN = "{column}"
_PLACE = re.compile(r"\{(\w*)\}")


class BulkColumnsOptions(ChoiceOptions):
    """Options of the transform `bulk_columns`."""

    expression: Expression | None = Field(
        None,
        description="What is computed of each column; `{column}` stands for it.",
        examples=["trim({column})", "cast({column} as int) + 1"],
        change="from_now_on",
    )
    name: str | None = Field(
        None,
        min_length=1,
        description="What each is called then: `{name}` is its name, `{lower}` and `{upper}` the same in one "
        "case, `{1}` the first group of `matching`.",
        examples=["{name}_clean", "{1}", "{lower}"],
        change="from_now_on",
    )
    keep: bool = Field(
        False,
        description="Keep the columns as they are and add the new ones at the end; they need a `name`.",
        change="from_now_on",
    )

    @model_validator(mode="after")
    def _does_something(self) -> "BulkColumnsOptions":
        if self.expression is None and self.name is None:
            raise ValueError("say what becomes of the columns: an `expression`, a `name`, or both")
        if self.expression is not None and _COLUMN not in self.expression:
            raise ValueError("`expression` has no `{column}`, so all columns would become the same")
        if self.keep and self.name is None:
            raise ValueError("`keep` needs a `name` for the new columns")
        groups = re.compile(self.matching).groups if self.matching is not None else 0
        for place in _PLACE.findall(self.name or ""):
            if place.isdecimal() and not 0 < int(place) <= groups:
                raise ValueError(f"`{{{place}}}` in `name` needs so many groups in `matching`: `^src_(.*)$`")
            if not place.isdecimal() and place not in {"name", "lower", "upper"}:
                raise ValueError(
                    f"`{{{place}}}` in `name` is nothing: use `{{name}}`, `{{lower}}` or `{{1}}`"
                )
        return self


class BulkColumns(Transform[BulkColumnsOptions]):
    """Rename or compute many columns by one rule, chosen by name, pattern or type; all others stay.

    All that is said has to be true of a column. Names are taken as they stand, without backquotes. A column
    that is renamed only stays event time.

    In visual tools: BulkColumnExpressions, BulkColumnRename.
    """

    example = {"types": ["string"], "expression": "trim({column})"}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """All columns, the chosen ones as the rule has it.

        Raises:
            GemError: When two columns would have one name.
        """
        from pyspark.sql.functions import expr

        made = self._made(kinds_of(inputs[0]))
        for problem in self._doubled(made):
            raise GemError(problem.code, problem.message, problem.hint, "name")
        return inputs[0].select(*(expr(body).alias(name) for name, body in made))

    def infer(self, *inputs: Facts) -> Facts:
        """All columns, where it can be told which are chosen."""
        (facts,) = inputs
        made = self._known(facts)
        if made is None or next(self._doubled(made), None) is not None:
            return facts.with_columns(None)
        return with_operators(facts, dict(made)).with_columns(project(dict(made), facts))

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """Each column of the one it is made of."""
        (facts,) = inputs
        made = self._known(facts)
        return None if made is None or next(self._doubled(made), None) else projected(dict(made), facts)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The names exist, the expression can be computed of each column, and each gets a name of its own."""
        (facts,) = inputs
        options = self.options
        yield from missing_names(options.columns or (), facts, "columns")
        yield from missing_names(options.except_columns, facts, "except_columns")
        made = self._known(facts)
        if made is None:
            return
        doubled = list(self._doubled(made))
        yield from doubled
        computed = "expression" if options.expression is not None else "name"
        said: set[str] = set()
        for _, body in made if not doubled else ():
            for finding in check_expression(body, facts, computed, generators=False):
                if finding.message not in said:
                    said.add(finding.message)
                    yield finding
        if all(body == backquoted(name) for name, body in made):
            yield Finding("GB205", _NOTHING, _WIDER, computed, "warning")

    def _known(self, facts: Facts) -> list[tuple[str, str]] | None:
        known = kinds_known(facts)
        if known is None or any(self.options.chooses(*column) is None for column in known):
            return None
        return self._made(known)

    def _made(self, columns: "Sequence[tuple[str, str | None]]") -> list[tuple[str, str]]:
        """The columns that come out, each with its expression."""
        found: list[tuple[str, str]] = []
        added: list[tuple[str, str]] = []
        for name, kind in columns:
            own = backquoted(name)
            if not self.options.chooses(name, kind):
                found.append((name, own))
                continue
            body = (self.options.expression or _COLUMN).replace(_COLUMN, own)
            if self.options.keep:
                found.append((name, own))
                added.append((self._name(name), body))
            else:
                found.append((self._name(name), body))
        return [*found, *added]

    def _name(self, name: str) -> str:
        if self.options.name is None:
            return name
        match = re.search(self.options.matching or "", name, re.IGNORECASE)
        places = {"name": name, "lower": name.lower(), "upper": name.upper()}

        def filled(place: re.Match[str]) -> str:
            if place[1].isdecimal():
                return (match[int(place[1])] or "") if match is not None else ""
            return places[place[1]]

        return _PLACE.sub(filled, self.options.name)

    def _doubled(self, made: "Sequence[tuple[str, str]]") -> "Iterator[Finding]":
        seen: dict[str, str] = {}
        for name, body in made:
            if not name:
                yield Finding("GB205", f"the column of {body} would have no name", _OTHERS, "name")
            elif name.lower() in seen:
                message = f"there would be two columns `{name}`: of {seen[name.lower()]} and of {body}"
                yield Finding("GB205", message, _OTHERS, "name")
            seen.setdefault(name.lower(), body)


_OTHERS = "Choose another `name`, or other columns."
_NOTHING = "no column is chosen, so nothing is changed"
_WIDER = "Say less of them: a column has to meet all that is said."
