"""Rows that change those of a table that have their key: what the targets with `merge` have in common.

The options and their checks, one row of each key by the sequence, the statement, and a session to run it in.
The gem knows its table: how it is made, what it is called, and which micro-batches it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gem_bundle.merging.naming import SOURCE as SOURCE
    from gem_bundle.merging.naming import TARGET as TARGET
    from gem_bundle.merging.naming import remembered_name as remembered_name
    from gem_bundle.merging.options import MergeOptions as MergeOptions
    from gem_bundle.merging.options import check_keys as check_keys
    from gem_bundle.merging.options import check_rows as check_rows
    from gem_bundle.merging.options import merged_or_added as merged_or_added
    from gem_bundle.merging.ordering import NO_SEQUENCE as NO_SEQUENCE
    from gem_bundle.merging.ordering import is_orderable as is_orderable
    from gem_bundle.merging.ordering import refused as refused
    from gem_bundle.merging.sessions import SessionBeside as SessionBeside
    from gem_bundle.merging.upserts import Upserts as Upserts
    from gem_bundle.merging.upserts import schema_of as schema_of

_HOMES = {
    "naming": ("SOURCE", "TARGET", "remembered_name"),
    "options": ("MergeOptions", "check_keys", "check_rows", "merged_or_added"),
    "ordering": ("NO_SEQUENCE", "is_orderable", "refused"),
    "sessions": ("SessionBeside",),
    "upserts": ("Upserts", "schema_of"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605 (derived, so that it can't differ from what is importable)


def __getattr__(name: str) -> object:
    from gem_bundle.late import load_name

    return load_name(__name__, _HOME, name)


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
