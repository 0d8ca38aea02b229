"""The rules of joins and unions of streams (guide: *Join Operations*, its support matrix).

What is about the output mode is in `gem_bundle.check.streaming.output_modes`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.check.report import at_operator
from gem_bundle.operators import LACKING, JoinOperator, any_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.operators import Ancestry, Operator
    from gem_bundle.pipeline.plan import Plan

_NAMES = {
    "inner": "inner",
    "cross": "cross",
    "left": "left outer",
    "right": "right outer",
    "full": "full outer",
    "left_semi": "left semi",
    "left_anti": "left anti",
}


def check_joins(plan: Plan, ancestry: Ancestry) -> Iterator[Diagnostic]:
    """What is wrong with joins and unions, whatever the output mode.

    Args:
        plan: The pipeline.
        ancestry: The operators of its queries.
    """
    filters = [operator for operator in ancestry.operators if operator.kind == "filter"]
    for operator in ancestry.operators:
        if isinstance(operator, JoinOperator):
            lacking = operator.how == "inner" and operator.equality is False
            if lacking and _are_filtered(plan, ancestry, operator, filters):
                continue
            yield from _check_join(plan, operator)
        elif operator.kind == "union" and True in operator.streams and False in operator.streams:
            message = (
                "a stream and a static relation can't be put together: when the static rows would come "
                "isn't defined"
            )
            hint = "Read all inputs as streams; a static relation can only be joined to one."
            yield at_operator(plan, operator, "GB326", message, hint)


def _are_filtered(plan: Plan, ancestry: Ancestry, join: JoinOperator, filters: Iterable[Operator]) -> bool:
    """Whether there is a filter behind a join in each of the queries that it is in.

    Spark moves a condition behind a join into it, where it may be the missing equality.
    """
    nodes = {found.node for found in filters if ancestry.is_before(join, found)}
    ways = (set(plan.upstream([target.id])) for target in plan.definition.of_kind("target"))
    return bool(nodes) and all(nodes & way for way in ways if join.node in way)


def _check_join(plan: Plan, join: JoinOperator) -> Iterator[Diagnostic]:
    left, right = join.streams
    refused = _refused_sides(join, left, right)
    if refused is not None:
        yield at_operator(plan, replace(join, option=join.how_option), "GB321", *refused)
        return
    if not (left and right):
        return
    streams = f"the streams `{join.names[0]}` and `{join.names[1]}` are joined"
    if join.how == "cross":
        message = f"{streams} by a cross join: Spark has none for streams, whatever is asked behind it"
        hint = "Use `how: inner`, and name the columns that must be equal in `on`."
        yield at_operator(plan, join, "GB324", message, hint)
    elif join.equality is False:
        message = (
            f"{streams} without any columns that must be equal, so Spark would have to compare every row "
            "with all that ever came"
        )
        hint = "Name the columns in `on`, or add an equality between columns of both to the `condition`."
        yield at_operator(plan, join, "GB324", message, hint)
    elif join.how in {"left", "right", "full", "left_semi"}:
        yield from _check_outer(plan, join)
    else:
        yield from _check_growth(plan, join)


def _refused_sides(join: JoinOperator, left: bool | None, right: bool | None) -> tuple[str, str] | None:
    """Why these sides can't be joined in that way, and what to do; None when they can or might."""
    kind = _NAMES[join.how]
    first, second = (f"`{name}`" for name in join.names)
    if join.how == "left_anti" and right:
        return (
            f"a left anti join can't have a stream on the right: that no partner of a row of {first} will "
            f"ever come through {second} is never certain",
            f"Read {second} with `mode: batch`, or use a left join with a range of time and keep the rows "
            "without a partner.",
        )
    if join.how in {"left", "left_semi"} and left is False and right:
        return (
            f"a {kind} join can't have a static relation on the left and a stream on the right: rows of "
            f"{first} would wait for partners for ever",
            f"Put the stream {second} first, or use an inner join.",
        )
    if join.how == "right" and left and right is False:
        return (
            f"a right outer join can't have a stream on the left and a static relation on the right: rows "
            f"of {second} would wait for partners for ever",
            f"Put {second} first, or use a left outer or an inner join.",
        )
    if join.how == "full" and True in (left, right) and False in (left, right):
        static, stream, how = (first, second, "right") if right else (second, first, "left")
        return (
            "a full outer join can't be of a stream and a static relation: the rows of "
            f"{static} would wait for partners for ever",
            f"Use `how: {how}`, which keeps all rows of the stream {stream}, or an inner join.",
        )
    return None


def _check_outer(plan: Plan, join: JoinOperator) -> Iterator[Diagnostic]:
    """An outer or semi join needs to know when a row has waited long enough."""
    left, right = join.bounded
    needed = {"left": (left,), "left_semi": (left,), "right": (right,), "full": (left, right)}[join.how]
    may_end = join.event_time_key is not False or any(bound is not False for bound in needed)
    if may_end and join.watermarked != (False, False):
        yield from _check_growth(plan, join)
        return
    kept, other = join.names if join.how != "right" else join.names[::-1]
    marked = dict(zip(join.names, join.watermarked, strict=True))
    lacking = [name for name in join.names if marked[name] is False]
    if join.how == "full":
        missing = f"`{lacking[0]}` has no watermark" if len(lacking) == 1 else "neither has a watermark"
        if not lacking:
            missing = "the condition doesn't say how far apart in time partners can be"
    elif marked[other] is False:
        missing = f"`{other}` has no watermark"
    else:
        missing = f"the condition doesn't say how much later a partner in `{other}` can be"
    message = (
        f"a {_NAMES[join.how]} join of two streams must know when a row of `{kept}` has waited long "
        f"enough for a partner, and {missing}"
    )
    times = _times(join)
    hint = _bounded_by(lacking, f"{times[other]} <= {times[kept]} + interval 1 hour")
    yield at_operator(plan, join, "GB323", message, hint)


def _check_growth(plan: Plan, join: JoinOperator) -> Iterator[Diagnostic]:
    """A join that never forgets the rows of a side runs until its state has filled the disk.

    Spark lets rows of a side go only where a column of it carries a watermark too. It starts an outer join
    without one, whose rows without a partner then wait for ever.
    """
    if join.event_time_key is not False:
        return
    both = zip(join.bounded, join.watermarked, strict=True)
    endless = [any_of(None if fact is None else not fact for fact in facts) for facts in both]
    kept = [name for name, for_ever in zip(join.names, endless, strict=True) if for_ever]
    if not kept or None in endless:
        return
    lacking = [n for n, marked in zip(join.names, join.watermarked, strict=True) if marked is False]
    if lacking:
        names = " and ".join(f"`{name}`" for name in lacking)
        reason = f"{names} {'has' if len(lacking) == 1 else 'have'} no watermark"
    else:
        reason = "the condition doesn't say how far apart in time partners can be"
    message = f"the join keeps the rows of {_and_of(kept)} for ever, because {reason}"
    lacked = LACKING.get(join.how, frozenset())
    waiting = [name for place, name in enumerate(join.names) if 1 - place in lacked and endless[place]]
    if waiting:
        message += f": those of {_and_of(waiting)} that have no partner never come out"
    first, second = join.names
    earlier, later = _times(join)[first], _times(join)[second]
    hint = _bounded_by(lacking, f"{later} between {earlier} and {earlier} + interval 1 hour")
    yield at_operator(plan, join, "GB325", message, hint, "warning")


def _times(join: JoinOperator) -> dict[str, str]:
    """How a condition calls the event time of each input."""
    pairs = zip(join.names, join.times, strict=True)
    return {name: f"{name}.{column or 'time'}" for name, column in pairs}


def _bounded_by(lacking: list[str], example: str) -> str:
    """What bounds how long rows wait: watermarks, and a condition over event time."""
    condition = f"let the event times be equal or add a range of time to the `condition`, such as `{example}`"
    if not lacking:
        return f"{condition[0].upper()}{condition[1:]}."
    return f"Put a `watermark` on the event time of {_and_of(lacking)}; and {condition}."


def _and_of(names: Iterable[str]) -> str:
    return " and of ".join(f"`{name}`" for name in names)
