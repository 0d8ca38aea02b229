"""What can be said of Spark SQL expressions before Spark runs: for `infer` and `check` of transforms.

Names are resolved, and types and event time followed, as Spark's analyser does it. Whatever isn't
certain is unknown, and nothing is said of it: never a false alarm. Plain column references are
read by regular expressions; anything else is parsed by sqlglot, which is imported for the first of them.

Names are imported when they are first used: a pipeline without joins pays nothing for the reading of theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.facts import UNKNOWN_DELAY as UNKNOWN_DELAY

if TYPE_CHECKING:
    from gem_bundle.expressions.analysis import Analysis as Analysis
    from gem_bundle.expressions.analysis import analyse as analyse
    from gem_bundle.expressions.analysis import calls_functions as calls_functions
    from gem_bundle.expressions.analysis import limited as limited
    from gem_bundle.expressions.buffers import bare_function as bare_function
    from gem_bundle.expressions.buffers import buffers_of as buffers_of
    from gem_bundle.expressions.buffers import is_blind_to_duplicates as is_blind_to_duplicates
    from gem_bundle.expressions.buffers import is_the_same_again as is_the_same_again
    from gem_bundle.expressions.buffers import may_aggregate as may_aggregate
    from gem_bundle.expressions.buffers import meaning_of as meaning_of
    from gem_bundle.expressions.buffers import takes_first as takes_first
    from gem_bundle.expressions.casts import Casts as Casts
    from gem_bundle.expressions.casts import casts_of as casts_of
    from gem_bundle.expressions.casts import check_types as check_types
    from gem_bundle.expressions.findings import check_expression as check_expression
    from gem_bundle.expressions.findings import check_functions as check_functions
    from gem_bundle.expressions.findings import missing_columns as missing_columns
    from gem_bundle.expressions.findings import missing_names as missing_names
    from gem_bundle.expressions.findings import several_windows as several_windows
    from gem_bundle.expressions.functions import AGGREGATES as AGGREGATES
    from gem_bundle.expressions.functions import GENERATORS as GENERATORS
    from gem_bundle.expressions.generators import Generated as Generated
    from gem_bundle.expressions.generators import generated as generated
    from gem_bundle.expressions.grouping import grouped_by as grouped_by
    from gem_bundle.expressions.joins import JoinCondition as JoinCondition
    from gem_bundle.expressions.joins import join_condition as join_condition
    from gem_bundle.expressions.kinds import common_type as common_type
    from gem_bundle.expressions.kinds import united_type as united_type
    from gem_bundle.expressions.made import made_of as made_of
    from gem_bundle.expressions.made import made_of_inputs as made_of_inputs
    from gem_bundle.expressions.names import backquoted as backquoted
    from gem_bundle.expressions.names import keyed as keyed
    from gem_bundle.expressions.names import reference as reference
    from gem_bundle.expressions.names import split_alias as split_alias
    from gem_bundle.expressions.narrowing import only_narrows as only_narrows
    from gem_bundle.expressions.ordering import check_order as check_order
    from gem_bundle.expressions.pairs import asked_of_pairs as asked_of_pairs
    from gem_bundle.expressions.pairs import equal_keys as equal_keys
    from gem_bundle.expressions.pairs import equal_parts as equal_parts
    from gem_bundle.expressions.pairs import equalities as equalities
    from gem_bundle.expressions.pairs import equalities_of_inputs as equalities_of_inputs
    from gem_bundle.expressions.pairs import kept_by as kept_by
    from gem_bundle.expressions.pairs import terms_of as terms_of
    from gem_bundle.expressions.pairs import terms_of_semi_join as terms_of_semi_join
    from gem_bundle.expressions.projection import WINDOW_TYPE as WINDOW_TYPE
    from gem_bundle.expressions.projection import column_of as column_of
    from gem_bundle.expressions.projection import fields_of_star as fields_of_star
    from gem_bundle.expressions.projection import find as find
    from gem_bundle.expressions.projection import project as project
    from gem_bundle.expressions.projection import time_delay as time_delay
    from gem_bundle.expressions.qualifying import columns_named as columns_named
    from gem_bundle.expressions.qualifying import equal_columns as equal_columns
    from gem_bundle.expressions.qualifying import qualified as qualified
    from gem_bundle.expressions.readable import unreadable_query as unreadable_query
    from gem_bundle.expressions.steady import check_chance as check_chance
    from gem_bundle.expressions.steady import check_repeatable as check_repeatable
    from gem_bundle.expressions.steady import check_steady as check_steady
    from gem_bundle.expressions.steady import check_steady_columns as check_steady_columns
    from gem_bundle.expressions.trying import Tried as Tried
    from gem_bundle.expressions.trying import check_tried as check_tried
    from gem_bundle.expressions.trying import tried as tried
    from gem_bundle.expressions.uses import asked_by as asked_by
    from gem_bundle.expressions.uses import has_overlapping_windows as has_overlapping_windows
    from gem_bundle.expressions.uses import nulls_left_out as nulls_left_out
    from gem_bundle.expressions.uses import tested_by as tested_by
    from gem_bundle.expressions.uses import windows_over as windows_over

_HOMES = {
    "analysis": (
        "Analysis",
        "analyse",
        "calls_functions",
        "limited",
    ),
    "buffers": (
        "bare_function",
        "buffers_of",
        "is_blind_to_duplicates",
        "is_the_same_again",
        "may_aggregate",
        "meaning_of",
        "takes_first",
    ),
    "casts": ("Casts", "casts_of", "check_types"),
    "findings": (
        "check_expression",
        "check_functions",
        "missing_columns",
        "missing_names",
        "several_windows",
    ),
    "functions": ("AGGREGATES", "GENERATORS"),
    "generators": ("Generated", "generated"),
    "grouping": ("grouped_by",),
    "joins": (
        "JoinCondition",
        "join_condition",
    ),
    "kinds": ("common_type", "united_type"),
    "names": (
        "backquoted",
        "keyed",
        "reference",
        "split_alias",
    ),
    "ordering": ("check_order",),
    "projection": (
        "WINDOW_TYPE",
        "column_of",
        "fields_of_star",
        "find",
        "project",
        "time_delay",
    ),
    "qualifying": (
        "columns_named",
        "equal_columns",
        "qualified",
    ),
    "narrowing": ("only_narrows",),
    "made": ("made_of", "made_of_inputs"),
    "pairs": (
        "asked_of_pairs",
        "equal_keys",
        "equal_parts",
        "equalities",
        "equalities_of_inputs",
        "kept_by",
        "terms_of",
        "terms_of_semi_join",
    ),
    "readable": ("unreadable_query",),
    "steady": ("check_chance", "check_repeatable", "check_steady", "check_steady_columns"),
    "trying": ("Tried", "check_tried", "tried"),
    "uses": (
        "asked_by",
        "nulls_left_out",
        "has_overlapping_windows",
        "tested_by",
        "windows_over",
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME, "UNKNOWN_DELAY"])  # noqa: PLE0605 (derived, so that it can't differ from what is importable)


def __getattr__(name: str) -> object:
    from gem_bundle.late import load_name

    return load_name(__name__, _HOME, name)


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
