"""When a target is unwell, and when its query is started again: the sections `health` and `restarts`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from gem_bundle.types import Interval, interval_length

Level = Literal["warn", "fail"]
OnUnhealthy = Literal["report", "restart", "stop"]
Unit = Literal["seconds", "count", "share"]

_LASTING = "For how long it has to be so; by default it counts at once."


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


def _check_time(text: str) -> str:
    if interval_length(text)[0]:
        raise ValueError("write it in days or less: months and years vary in length")
    return text


def _check_share(text: str) -> str:
    number, percent, rest = text.strip().partition("%")
    try:
        share = float(number)
    except ValueError:
        share = -1.0
    if not percent or rest or not 0 <= share <= 100:
        raise ValueError("write a share as `1%`, from 0% to 100%")
    return text


_Time = Annotated[Interval, AfterValidator(_check_time)]
_Count = Annotated[int, Field(ge=0)]
_Share = Annotated[str, AfterValidator(_check_share)]


class _LimitShape(_Shape):
    @model_validator(mode="after")
    def _some(self) -> "_LimitShape":
        if getattr(self, "warn", None) is None and getattr(self, "fail", None) is None:
            raise ValueError("a limit has `warn`, `fail` or both")
        return self


class TimeLimitShape(_LimitShape):
    """A limit that is a length of time."""

    warn: _Time | None = Field(None, description="More than that is worth a look.")
    fail: _Time | None = Field(None, description="With more than that the target is unwell.")
    lasting: _Time | None = Field(None, description=_LASTING)


class CountLimitShape(_LimitShape):
    """A limit that is a number."""

    warn: _Count | None = Field(None, description="More than that is worth a look.")
    fail: _Count | None = Field(None, description="With more than that the target is unwell.")
    lasting: _Time | None = Field(None, description=_LASTING)


class ShareLimitShape(_LimitShape):
    """A limit that is a share of the rows."""

    warn: _Share | None = Field(None, description="More than that is worth a look.")
    fail: _Share | None = Field(None, description="With more than that the target is unwell.")
    lasting: _Time | None = Field(None, description=_LASTING)


class BehindShape(_Shape):
    """How far a target may be behind its sources."""

    records: _Count | CountLimitShape | None = Field(
        None, description="Records that wait, of sources that count them (Kafka)."
    )
    time: _Time | TimeLimitShape | None = Field(
        None, description="How long the oldest of what waits has been there."
    )


class HealthShape(_Shape):
    """When a target is unwell; a value is a limit of the level `fail`."""

    no_progress: _Time | TimeLimitShape | None = Field(
        None, description="How long a query may be at work without ending a micro-batch."
    )
    behind: BehindShape | None = Field(None, description="How far it may be behind its sources.")
    watermark_behind: _Time | TimeLimitShape | None = Field(
        None, description="How far its watermark may be behind the clock."
    )
    state_rows: _Count | CountLimitShape | None = Field(
        None, description="How many rows its state stores may have."
    )
    batch_time: _Time | TimeLimitShape | None = Field(None, description="How long a micro-batch may take.")
    rejected: _Share | ShareLimitShape | None = Field(
        None,
        description="Which share of the rows of the last 20 micro-batches may be rejected.",
        examples=["1%"],
    )
    on_unhealthy: OnUnhealthy | None = Field(
        None,
        description="What the run does about a target that is unwell: `report` it (the default), `restart` "
        "its query, or `stop` the run, which then has failed.",
    )


class RestartsShape(_Shape):
    """When a query that failed for a passing reason is started again."""

    max: int = Field(5, ge=0, description="How often within that time; once more, and the run fails.")
    within: _Time = Field("1 hour", description="Within which time starts are counted.")
    wait: _Time = Field("10 seconds", description="How long it waits before each.")


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit of one target.

    Args:
        name: What is measured: ``behind.records``.
        unit: What its values are: ``seconds``, a ``count``, or a ``share`` from 0 to 1.
        warn: More than that is worth a look; None without such a level.
        fail: With more than that the target is unwell; None without such a level.
        lasting: For how many seconds it has to be so.
    """

    name: str
    unit: Unit
    warn: float | None = None
    fail: float | None = None
    lasting: float = 0.0


@dataclass(frozen=True, slots=True)
class Health:
    """When a target is unwell.

    Args:
        limits: The limits.
        on_unhealthy: What the run does about it.
    """

    limits: tuple[Limit, ...] = ()
    on_unhealthy: OnUnhealthy = "report"


@dataclass(frozen=True, slots=True)
class Restarts:
    """When a query that failed for a passing reason is started again.

    Args:
        most: How often within that time.
        within: The time, in seconds.
        wait: Seconds before each start.
    """

    most: int = 5
    within: float = 3600.0
    wait: float = 10.0


_UNITS: dict[str, Unit] = {
    "no_progress": "seconds",
    "behind.records": "count",
    "behind.time": "seconds",
    "watermark_behind": "seconds",
    "state_rows": "count",
    "batch_time": "seconds",
    "rejected": "share",
}
LIMITS = tuple(_UNITS)
"""What can be limited."""


def health_of(*shapes: HealthShape | None) -> Health:
    """What is left of several sections: what a later one says wins, and its empty keys remove a limit.

    Args:
        shapes: That of the pipeline, then that of the target.
    """
    limits: dict[str, Limit] = {}
    action: OnUnhealthy = "report"
    for shape in shapes:
        if shape is None:
            continue
        action = shape.on_unhealthy or action
        for name in shape.model_fields_set - {"on_unhealthy"}:
            written = getattr(shape, name)
            if isinstance(written, BehindShape):
                found = {f"{name}.{part}": getattr(written, part) for part in written.model_fields_set}
            else:
                found = {key: written for key in LIMITS if key.partition(".")[0] == name}
            for key, value in found.items():
                limits.pop(key, None)
                if value is not None:
                    limits[key] = _limit(key, value)
    return Health(tuple(limits[name] for name in LIMITS if name in limits), action)


def restarts_of(*shapes: RestartsShape | None) -> Restarts | None:
    """How often queries are started again, as the last section that there is says; None without one."""
    said = [shape for shape in shapes if shape is not None]
    if not said:
        return None
    return Restarts(said[-1].max, _seconds(said[-1].within), _seconds(said[-1].wait))


def _limit(name: str, written: object) -> Limit:
    unit = _UNITS[name]
    if not isinstance(written, _LimitShape):
        return Limit(name, unit, fail=_number(unit, written))
    lasting = getattr(written, "lasting", None)
    return Limit(
        name,
        unit,
        _number(unit, getattr(written, "warn", None)),
        _number(unit, getattr(written, "fail", None)),
        0.0 if lasting is None else _seconds(lasting),
    )


def _number(unit: Unit, written: object) -> float | None:
    if written is None:
        return None
    text = str(written)
    if unit == "seconds":
        return _seconds(text)
    return float(text.strip().removesuffix("%")) / 100 if unit == "share" else float(text)


def _seconds(text: str) -> float:
    return interval_length(text)[1] / 1_000_000
