"""The checker: what is wrong with a pipeline, before anything starts.

Names are imported when they are first used, so that `gem-bundle explain`, which needs the catalogue
of codes only, doesn't pay for the checker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gem_bundle.check.checker import Checked, check_definition, check_file

__all__ = ["Checked", "check_definition", "check_file"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gem_bundle.check import checker

    return getattr(checker, name)
