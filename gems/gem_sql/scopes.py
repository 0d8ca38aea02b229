"""What the names of columns mean in a query over several tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gem_sql.joining import JOINS
from gem_sql.tree import UnknownQuery, columns_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gem_bundle import Facts
    from gem_bundle.operators import JoinType


@dataclass(frozen=True)
class Table:
    """A table of a query.

    Args:
        name: What the query calls it.
        facts: What is known of its rows.
        names: What its columns are called behind a join, by their names in lower case.
    """

    name: str
    facts: Facts
    names: dict[str, str] = field(default_factory=dict)


class Scope:
    """What the names of columns mean in a query.

    Args:
        tables: Its tables.
        steps: What those are called that are a part of another one, by their names.
        shared: The columns that `using` names: they are those of the first table that has them.
    """

    def __init__(
        self,
        tables: Iterable[Table],
        steps: Mapping[str, str] | None = None,
        shared: frozenset[str] = frozenset(),
    ) -> None:
        self._shared = shared
        self.tables = {table.name: table for table in tables}
        self._steps = steps or {}

    def column(self, table: Table, name: str, fields: Sequence[str] = ()) -> Any:
        """A column of a table.

        Args:
            table: The table.
            name: The column.
            fields: The way into it.
        """
        from gem_bundle.expressions.query import exp

        owner = self._steps.get(table.name, table.name)
        called = table.names.get(name.lower(), name)
        parts = [exp.to_identifier(part, quoted=True) for part in (owner, called, *fields)]
        return (
            exp.Dot.build(parts)
            if len(parts) > 4
            else exp.Column(**dict(zip(("this", "table", "db", "catalog"), reversed(parts), strict=False)))
        )

    def owner(self, node: Any) -> tuple[Table, str, list[str]] | None:
        """The table that a column is of, its name, and the way into it; None of what is no column.

        Raises:
            UnknownQuery: When it may be one of several.
        """
        parts = [part.name for part in node.parts]
        if len(parts) > 1 and parts[0].lower() in self.tables:
            table = self.tables[parts[0].lower()]
            if table.facts.column(parts[1]) is None:
                raise UnknownQuery
            return table, parts[1], parts[2:]
        owners = [table for table in self.tables.values() if table.facts.column(parts[0]) is not None]
        if len(owners) > 1 and parts[0].lower() not in self._shared:
            raise UnknownQuery
        return (owners[0], parts[0], parts[1:]) if owners else None

    def condition(self, join: Any, before: Sequence[Table], table: Table) -> Any:
        """The condition of a join, that of its `using` written out.

        Args:
            join: The join.
            before: The tables before it.
            table: Its table.
        """
        from gem_bundle.expressions.query import exp

        names = [column.name for column in join.args.get("using") or ()]
        if not names:
            return join.args.get("on")
        if how_of(join) in {"right", "full"}:
            raise UnknownQuery  # its columns are of the other side, or of both
        pairs = []
        for name in names:
            owner = next((one for one in before if one.facts.column(name) is not None), None)
            if owner is None or table.facts.column(name) is None:
                raise UnknownQuery
            pairs.append(exp.EQ(this=self.column(owner, name), expression=self.column(table, name)))
        return exp.and_(*pairs)

    def tables_in(self, node: Any) -> set[str]:
        """The tables that an expression is about."""
        owners = (self.owner(column) for column in columns_in(node))
        return {owner[0].name for owner in owners if owner is not None}

    def moved(self, node: Any) -> Any:
        """An expression over the tables as they are called here."""
        from gem_bundle.expressions.query import exp

        def instead(part: Any) -> Any:
            found = self.owner(part) if isinstance(part, exp.Column) and not part.find(exp.Star) else None
            return part if found is None else self.column(*found)

        return None if node is None else node.copy().transform(instead)


def shared_by(tree: Any) -> frozenset[str]:
    """The columns that the joins of a query name by `using`."""
    return frozenset(
        column.name.lower() for join in tree.args["joins"] for column in join.args.get("using") or ()
    )


def how_of(join: Any) -> JoinType:
    """How a join of a query joins.

    Raises:
        UnknownQuery: When it is none of Spark's.
    """
    how = JOINS.get((join.side, join.kind))
    if how is None:
        raise UnknownQuery
    return how
