"""What a query with a `lateral view` makes of what: a function makes several rows of each before the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem_bundle import Facts, Lineage, Made
from gem_bundle.expressions import made_of
from gem_bundle.lineage import passed
from gem_sql.composing import behind
from gem_sql.reading import with_lateral
from gem_sql.table_lineage import is_plain, of_table, table_of
from gem_sql.tree import sql_of

if TYPE_CHECKING:
    from gem_sql.table_lineage import Tables

_OUTER = "_outer"


def of_lateral(tree: Any, tables: Tables, names: list[str], made: Facts) -> Lineage | None:
    """What a query over one table beside one `lateral view` makes of what; None where that can't be told.

    Args:
        tree: The query.
        tables: Its tables by their names.
        names: The columns of its rows, by their keys.
        made: What is known of its rows.
    """
    views, table = tree.args["laterals"], table_of(tree, tables)
    plain = tree.copy()
    plain.set("laterals", None)
    if len(views) != 1 or table is None or not is_plain(plain):
        return None
    position, facts = table
    rows = with_lateral(facts, views[0])
    through = passed(facts.columns, position)
    if rows.columns is None or through is None or len(rows.columns) != len(through) + 1:
        return None
    call = views[0].this.copy()
    if views[0].args.get("outer") and not call.name.lower().endswith(_OUTER):
        call.set("this", f"{call.name}{_OUTER}")
    element = made_of(sql_of(call), facts.columns, position=position)
    columns = through | {rows.columns[-1].name.lower(): element}
    if len(columns) < len(rows.columns):
        return None
    second = of_table(plain, 0, rows, names, made)
    return None if second is None else behind(Lineage(columns, Made(element.rule, element.uses)), second)
