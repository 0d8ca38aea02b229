"""What the generator knows of the rows at one point of a pipeline: enough to write what Spark can analyse.

It is a model of its own and not the checker's, so that an error of the one doesn't hide in the other.
It may be wrong: only Spark decides.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from gem_bundle.schema import type_of

WINDOW = "struct<start: timestamp, end: timestamp>"
NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double"})
WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})


@dataclass(frozen=True, slots=True)
class Col:
    """A column.

    Args:
        name: Its name.
        type: Its type as DDL.
        marked: Whether it should carry a watermark's mark.
        qualifier: The name of the input it came from, where a join left it one.
    """

    name: str
    type: str
    marked: bool = False
    qualifier: str | None = None

    @property
    def family(self) -> str:
        """``number``, ``string``, ``timestamp``, ``struct`` … : types of one family go together."""
        head = self.type.partition("<")[0].partition("(")[0]
        return "number" if head in NUMBERS or head == "decimal" else head

    def fields(self) -> list[Col]:
        """The fields of a struct; none for other types."""
        found = type_of(self.type)
        return [] if found is None else [Col(f.name, str(f.type)) for f in found.fields]


@dataclass(frozen=True, slots=True)
class Relation:
    """The rows that flow out of a node.

    Args:
        id: The node.
        cols: Its columns.
        streaming: Whether it is a stream.
        depth: How many transforms it is away from a source.
        aggregations: How many aggregations a stream went through.
        joins: How many joins of two streams.
        sources: The ids of the sources.
    """

    id: str
    cols: tuple[Col, ...]
    streaming: bool
    depth: int = 0
    aggregations: int = 0
    joins: int = 0
    sources: frozenset[str] = frozenset()

    def usable(self) -> list[Col]:
        """The columns that an expression can name: those whose name or qualified name is theirs alone."""
        names = Counter(col.name.lower() for col in self.cols)
        full = Counter((col.qualifier, col.name.lower()) for col in self.cols)
        return [
            col
            for col in self.cols
            if names[col.name.lower()] == 1
            or (col.qualifier is not None and full[col.qualifier, col.name.lower()] == 1)
        ]

    def ambiguous(self) -> set[str]:
        """The names in lower case that several columns have."""
        names = Counter(col.name.lower() for col in self.cols)
        return {name for name, count in names.items() if count > 1}

    def marked(self) -> list[Col]:
        """The columns that should be event time."""
        return [col for col in self.usable() if col.marked]

    def of_family(self, *families: str) -> list[Col]:
        """The columns of these families."""
        return [col for col in self.usable() if col.family in families]

    def followed_by(self, node: str, cols: list[Col] | tuple[Col, ...]) -> Relation:
        """What comes out of a transform with one input."""
        return replace(self, id=node, cols=tuple(cols), depth=self.depth + 1)


def merged(node: str, inputs: list[Relation], cols: list[Col] | tuple[Col, ...]) -> Relation:
    """What comes out of a transform with several inputs."""
    return Relation(
        node,
        tuple(cols),
        any(relation.streaming for relation in inputs),
        max(relation.depth for relation in inputs) + 1,
        sum(relation.aggregations for relation in inputs if relation.streaming),
        sum(relation.joins for relation in inputs if relation.streaming),
        frozenset().union(*(relation.sources for relation in inputs)),
    )
