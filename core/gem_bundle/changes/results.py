"""Results of groups that tell nothing but which group it is: they are the same whatever rows made them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gem_bundle.changes.forms import columns_in, form_of
from gem_bundle.expressions import bare_function
from gem_bundle.expressions.functions import BY_CHANCE, BY_CODE, BY_PLACE, CURRENT_TIME, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gem_bundle.lineage import Kept

VARYING = re.compile(rf"(?i)\b({'|'.join(sorted(BY_CHANCE | BY_CODE | BY_PLACE | CURRENT_TIME))})\b")
"""Functions that may give something else each time; some are called without brackets."""
# What gives one of its values, or a part of one.
_ONE_OF = words(
    """
    any_value approx_percentile bool_and bool_or every first first_value last last_value max max_by min
    min_by mode percentile_approx some
    """
)
_STAR = "sqlglot.expressions.core.Star'"


def tell_of_rows(kept: Kept, columns: Iterable[str]) -> bool:
    """Whether what is kept for some columns goes by which rows have come, or may.

    Of what groups are formed by the largest, the first or any other one is what the group is told by.

    Args:
        kept: What a node keeps of groups.
        columns: Columns that come out of it.
    """
    keys = {use for key in kept.keys if key.rule == "=" for use in key.uses or ()}
    return any(not _is_of_keys(kept.values[column], keys) for column in columns)


def _is_of_keys(functions: Mapping[str, tuple[str, ...]] | None, keys: set[str]) -> bool:
    if functions is None:
        return False
    return all(_gives_a_key(text, keys) for text in functions)


def _gives_a_key(function: str, keys: set[str]) -> bool:
    form = form_of(bare_function(function))
    if form is None or form[0] not in _ONE_OF or _STAR in function or VARYING.search(function):
        return False
    return columns_in(form) <= keys
