"""The columns of an entry."""

from __future__ import annotations


def columns(*, binary: bool) -> tuple[tuple[str, str], ...]:
    """The names and types.

    Args:
        binary: Whether values are bytes.
    """
    value = "binary" if binary else "string"
    return (
        ("stream", "string"),
        ("id", "string"),
        ("timestamp", "timestamp"),
        ("fields", f"map<string, {value}>"),
    )
