"""Rows that a target is given, and what is outside of it then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from gem_bundle.testing.conformance.streams import NAME
from gem_bundle.testing.conformance.suite import GemConformance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from gem_bundle.testing.conformance.inputs import Folder

    Rows = Sequence[Mapping[str, Any]]

_NAMES = ("ada", "", 'a "quoted" name; with, signs\n', "Ľubica ☂", None)


def is_seen(suite: type[GemConformance]) -> bool:
    """Whether the suite can see what is outside."""
    return cast("type[Writing]", suite).written is not Writing.written


class Writing(GemConformance):
    """Has a target write rows that the suite knows.

    Attributes:
        schema: The columns of the rows that the target is given, as DDL.
    """

    schema: ClassVar[str] = "id bigint, name string"

    def rows(self, number: int, count: int = 3) -> list[dict[str, Any]]:
        """The rows that the target is given, all different; override it together with `schema`.

        Called several times in a test.

        Args:
            number: Which portion: other rows for another number.
            count: How many.
        """
        names = (_NAMES[index % len(_NAMES)] for index in range(count))
        return [{"id": 1_000 * number + index, "name": name} for index, name in enumerate(names)]

    def written(self) -> Rows:
        """All rows that are outside now, as a reader would find them who knows what he does.

        Called after `provide` and after each run, when no query runs. The suite compares the columns
        that the rows it gave have. A target that promises no delivery, because it is for looking at,
        may leave it out.
        """
        raise NotImplementedError

    def written_with(self, gem: Any) -> Rows:  # noqa: ARG002 (for who derives from it)
        """All rows that are outside now, as a reader finds them who was told the options of a gem.

        Override it where `edits` has other places or formats: they say where and how rows are found. It may
        raise what a reader gets who can't read what is there.

        Args:
            gem: The target with these options.
        """
        return self.written()

    def _name(self) -> str:
        """A name for the query that no other test uses."""
        return f"{NAME}_{self.folder.parent.name}".replace("-", "_").replace(".", "_")

    def _stream(self, given: Folder) -> DataFrame:
        return given.stream(self.spark, "given")
