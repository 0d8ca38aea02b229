"""What another value of `spark_options` does to the target `table`, by the format that it has."""

from typing import TYPE_CHECKING, Any

from gem_bundle import OptionChange
from gem_bundle.diagnostics import listed_names

if TYPE_CHECKING:
    from collections.abc import Mapping

_OF_TEXTS = frozenset({"", "csv", "json", "text", "xml"})
"""The formats whose readers have to be told how files were written; the empty one isn't known."""

# By Spark's names, those that the target `file` has as options of its own, and others of the same meaning.
_TOLD_TO_READERS = frozenset(
    [
        *("header", "sep", "delimiter", "quote", "escape", "chartoescapequoteescaping"),
        *("nullvalue", "emptyvalue", "dateformat", "timestampformat", "timestampntzformat", "timeformat"),
        *("encoding", "charset", "linesep", "rowtag", "attributeprefix", "valuetag"),
    ]
)
_OF_STORAGE = frozenset({"compression", "codec", "maxrecordsperfile", "partitionoverwritemode", "retention"})


def change_of(before: Any, after: "Mapping[str, Any]", form: str) -> OptionChange:
    """What other options do to the rows of a table.

    Args:
        before: The options that there were.
        after: The options that there are.
        form: The format of the table in small letters; empty where it isn't named.
    """
    was = before or {}
    telling = [
        name
        for name in dict.fromkeys([*was, *after])
        if was.get(name) != after.get(name) and name.lower() not in _OF_STORAGE
    ]
    told = [name for name in telling if name.lower() in _TOLD_TO_READERS]
    if told and form in _OF_TEXTS:
        where = "" if form else "it may be a table of files: "
        hint = "Write into another table, under another id."
        return OptionChange(
            "mixed",
            f"{where}by {listed_names(told)}, its files are then written in two ways, and a reader is told "
            "one of them",
            hint if form else f"{hint} If it is one of another kind, such as Delta, accept the change.",
        )
    if not telling:
        return OptionChange("continues", "the rows are the same")
    return OptionChange(
        "from_now_on",
        f"rows are written by {listed_names(telling)} from now on, those that are there stay as they are",
    )
