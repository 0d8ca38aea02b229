"""The plan of a pipeline that a test takes for right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.check import check_file

if TYPE_CHECKING:
    from os import PathLike

    from gem_bundle.pipeline.loader import LoadOptions
    from gem_bundle.pipeline.plan import Plan


def plan_of(file: str | PathLike[str], options: LoadOptions | None = None) -> Plan:
    """The plan of a pipeline without an error; what is wrong with one that has some is said.

    Args:
        file: The pipeline file.
        options: How it is loaded.
    """
    checked = check_file(file, options)
    assert checked.plan is not None, "\n".join(map(str, checked.diagnostics))
    return checked.plan
