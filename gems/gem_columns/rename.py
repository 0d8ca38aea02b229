"""The transform `rename`: other names for columns."""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import field_validator

from gem_bundle import Facts, Field, Finding, GemError, Lineage, Options, Transform
from gem_bundle.diagnostics import suggest
from gem_bundle.expressions import missing_names
from gem_bundle.lineage import column_keys, same

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


class RenameOptions(Options):
    """Options of the transform `rename`."""

    columns: dict[str, str] = Field(
        min_length=1,
        description="The new names, as a mapping of old to new name.",
        examples=[{"ts": "at", "msg": "message"}],
        change="from_now_on",
    )

    @field_validator("columns")
    @classmethod
    def _one_to_one(cls, columns: dict[str, str]) -> dict[str, str]:
        for what, names in (("old", list(columns)), ("new", list(columns.values()))):
            if "" in names:
                raise ValueError("a name can't be empty")
            name, count = Counter(name.lower() for name in names).most_common(1)[0]
            if count > 1:
                raise ValueError(f"`{name}` stands twice among the {what} names")
        return columns


class Rename(Transform[RenameOptions]):
    """Give columns other names; all others stay as they are.

    All renamings happen at once, so two columns can swap names. Names are taken as they stand,
    without backquotes; a field of a struct can't be renamed. Event time stays event time.
    """

    example = {"columns": {"ts": "at"}}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The same columns under their new names.

        Raises:
            GemError: When the input has no column of an old name; Spark would say nothing.
        """
        (df,) = inputs
        renamed = self.options.columns
        known = {name.lower() for name in df.columns}
        for name in renamed:
            if name.lower() not in known:
                hint = suggest(name, df.columns, what="columns")
                raise GemError("GB205", f"there is no column `{name}`", hint, "columns")
        if known.isdisjoint(new.lower() for new in renamed.values()):
            return df.withColumnsRenamed(renamed)
        # Spark renames one after the other: `{a: b, b: a}` would make both of them `a`.
        between = {old: f"__gem_bundle_{position}" for position, old in enumerate(renamed)}
        back = {between[old]: new for old, new in renamed.items()}
        return df.withColumnsRenamed(between).withColumnsRenamed(back)

    def infer(self, *inputs: Facts) -> Facts:
        """The same columns under their new names."""
        (facts,) = inputs
        if facts.columns is None:
            return facts
        new = {old.lower(): name for old, name in self.options.columns.items()}
        return facts.with_columns(
            replace(column, name=new.get(column.name.lower(), column.name)) for column in facts.columns
        )

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """The same columns under their new names."""
        before, after = column_keys(inputs[0].columns), column_keys(self.infer(*inputs).columns)
        if before is None or after is None:
            return None
        return Lineage({new: same(old) for new, old in zip(after, before, strict=True)})

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The old names exist, and no column gets the name of one that stays."""
        (facts,) = inputs
        yield from missing_names(self.options.columns, facts, "columns")
        old = {name.lower() for name in self.options.columns}
        stays = {c.name.lower() for c in facts.columns or () if c.name.lower() not in old}
        for name in self.options.columns.values():
            if name.lower() in stays:
                yield Finding(
                    "GB205",
                    f"there will be two columns `{name}`: the renamed one, and one that has the name",
                    "Choose another name, or drop the other column first.",
                    "columns",
                    "warning",
                )
