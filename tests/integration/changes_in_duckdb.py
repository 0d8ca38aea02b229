"""What becomes of changes, computed by DuckDB from the files that a pipeline reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Row = tuple[Any, ...]

LATEST: Final = """
    select id, part, "at", op, city, note
    from changes
    qualify row_number() over (
        partition by id, part
        order by "at" desc, op = 'd' desc, city desc nulls last, note desc nulls last
    ) = 1 and op <> 'd'
"""
VERSIONS: Final = """
    with one as (
        select * from changes
        qualify row_number() over (
            partition by id, part, "at" order by op = 'd' desc, city desc nulls last, note desc nulls last
        ) = 1
    ), marked as (
        select *, coalesce(
            (op = 'd') <> (lag(op) over key = 'd') or (op <> 'd' and city is distinct from lag(city) over key), true
        ) as begins
        from one window key as (partition by id, part order by "at")
    ), runs as (
        select *, sum(begins::int) over (partition by id, part order by "at") as run from marked
    ), made as (
        select id, part, max("at") as "at", last(city order by "at") as city, last(note order by "at") as note,
            min("at") as valid_from, bool_or(op = 'd') as gone
        from runs group by id, part, run
    )
    select * exclude gone, valid_to is null as is_current from (
        select *, lead(valid_from) over (partition by id, part order by valid_from) as valid_to from made
    ) where not gone
"""


def latest(files: Sequence[Path]) -> set[Row]:
    """The last change of each key that isn't deleted."""
    return _asked(LATEST, files)


def versions(files: Sequence[Path]) -> set[Row]:
    """The versions of each key; a change of the note alone makes none."""
    columns = 'id, part, "at", city, note, valid_from, valid_to, is_current'
    return _asked(f"select {columns} from ({VERSIONS})", files)


def _asked(query: str, files: Sequence[Path]) -> set[Row]:
    if not files:
        return set()
    import duckdb  # which the fast tests collect, and would load for nothing

    with duckdb.connect() as db:
        db.execute(
            "create table changes as from read_json($files, format = 'newline_delimited', columns = "
            "{id: 'varchar', part: 'int', 'at': 'int', op: 'varchar', city: 'varchar', note: 'int'})",
            {"files": [str(file) for file in files]},
        )
        found = db.execute(query).fetchall()
    assert len(set(found)) == len(found)
    return set(found)
