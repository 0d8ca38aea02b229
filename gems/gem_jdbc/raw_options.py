"""What another value of `spark_options` does to the target `jdbc`: drivers have settings that change rows."""

from typing import TYPE_CHECKING, Any

from gem_bundle import OptionChange
from gem_bundle.diagnostics import listed_names

if TYPE_CHECKING:
    from collections.abc import Mapping

# How settings begin by which no row changes: those of connecting, waiting, sending, and making a table.
_OF_TRANSPORT = (
    "applicationname",
    "batchsize",
    "connectionprovider",
    "connecttimeout",
    "createtable",
    "isolationlevel",
    "keytab",
    "logintimeout",
    "numpartitions",
    "preparethreshold",
    "principal",
    "querytimeout",
    "refreshkrb5config",
    "rewritebatched",
    "sockettimeout",
    "ssl",
    "tcpkeepalive",
)


def change_of(before: Any, after: "Mapping[str, Any]") -> OptionChange:
    """What other settings do to the rows of a table.

    Args:
        before: The settings that there were.
        after: The settings that there are.
    """
    was = before or {}
    telling = [
        name
        for name in dict.fromkeys([*was, *after])
        if was.get(name) != after.get(name) and not name.lower().startswith(_OF_TRANSPORT)
    ]
    if not telling:
        return OptionChange("continues", "the rows are the same")
    return OptionChange(
        "from_now_on",
        f"{listed_names(telling)} may change how rows are written, and where to",
    )
