"""The transforms `watermark`, `aggregate` and `deduplicate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gem_bundle import Column, Facts
from gem_bundle.expressions import UNKNOWN_DELAY, WINDOW_TYPE
from gem_event_time.aggregate import Aggregate
from gem_event_time.deduplicate import Deduplicate
from gem_event_time.key_order import key_order
from gem_event_time.watermark import Watermark
from tests.gems.transforms import Folder, drain, events, findings, kinds, made, stream_of, table_of
from tests.samples import examples

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

    from gem_bundle import Transform

AT = Column("at", "timestamp", "10 minutes")
SEEN = Column("seen", "timestamp")
ID = Column("id", "bigint")
PAGE = Column("page", "string")
CLICKS = stream_of(AT, SEEN, ID, PAGE)
COUNT = {"aggregates": {"n": "count(*)"}}
MINUTE = {"column": "at", "duration": "1 minute"}


def test_a_watermark_marks_one_column() -> None:
    marked = made(Watermark, column="SEEN", delay="1 hour").infer(CLICKS)
    assert marked == stream_of(Column("at", "timestamp"), Column("seen", "timestamp", "1 hour"), ID, PAGE)
    again = made(Watermark, column="at", delay="1 hour").infer(CLICKS)
    assert again.column("at") == Column("at", "timestamp", "1 hour")
    # Two columns of the name: what Spark makes of it shows when it runs.
    assert made(Watermark, column="orders.at", delay="1 hour").infer(CLICKS).columns is None
    assert made(Watermark, column="at", delay="1 hour").infer(Facts(streaming=True)).columns is None


def test_a_watermark_on_a_static_relation_does_nothing() -> None:
    static = table_of(Column("at", "timestamp"))
    assert made(Watermark, column="at", delay="1 hour").infer(static) == static
    assert findings(Watermark, table_of(ID), column="gone", delay="1 hour") == []


def test_a_watermark_makes_unsure_columns_sure() -> None:
    unsure = stream_of(Column("at", None, UNKNOWN_DELAY), Column("b", None, UNKNOWN_DELAY))
    marked = made(Watermark, column="at", delay="1 hour").infer(unsure)
    assert marked == stream_of(Column("at", None, "1 hour"), Column("b"))


def test_event_time_exists_and_is_a_timestamp() -> None:
    (finding,) = findings(Watermark, CLICKS, column="att", delay="1 hour")
    assert (finding.option, finding.hint) == ("column", "Did you mean `at`?")
    (finding,) = findings(Watermark, CLICKS, column="page", delay="1 hour")
    assert finding.message == "`page` is a string; event time must be a timestamp"
    assert "to_timestamp(page)" in finding.hint
    both = stream_of(Column("at", "timestamp", qualifier="a"), Column("at", "timestamp", qualifier="b"))
    (finding,) = findings(Watermark, both, column="at", delay="1 hour")
    assert (finding.code, finding.message) == ("GB211", "`at` may be `a.at` or `b.at`")
    window = stream_of(Column("window", WINDOW_TYPE), Column("made"))
    for column in ("window", "made", "window.end", "`made`"):
        assert findings(Watermark, window, column=column, delay="1 hour") == []


@pytest.mark.parametrize("delay", ["10 m", "10", 10, "-1 minute", "soon", "1.5 minutes", None])
def test_a_delay_is_an_interval(delay: Any) -> None:
    with pytest.raises(ValidationError):
        made(Watermark, column="at", delay=delay)


def test_the_window_comes_first_and_keeps_the_watermark() -> None:
    counted = made(Aggregate, window=MINUTE, group_by=["page"], **COUNT).infer(CLICKS)
    window = Column("window", WINDOW_TYPE, "10 minutes")
    assert counted == stream_of(window, PAGE, Column("n", "bigint"))
    assert kinds(counted) == ["aggregate"]
    session = {"column": "seen", "gap": "5 minutes"}
    counted = made(Aggregate, session=session, group_by={"p": "page"}, **COUNT).infer(CLICKS)
    assert counted.columns == (
        Column("session_window", WINDOW_TYPE, session=True),
        Column("p", "string"),
        Column("n", "bigint"),
    )
    again = made(Aggregate, window={"column": "window", "duration": "1 hour"}, **COUNT)
    windows = stream_of(Column("window", WINDOW_TYPE, "10 minutes"))
    assert again.infer(windows).columns == (
        Column("window", WINDOW_TYPE, "10 minutes"),
        Column("n", "bigint"),
    )


@pytest.mark.parametrize(
    ("gap", "group", "told"),
    [
        ("5 minutes", "window(seen, '1 hour')", True),
        ("5 minutes", "session_window(seen, '30 seconds')", True),
        # The same one, once more; and gaps that each row has for itself may be any.
        ("5 minutes", "session_window(seen, '300 seconds')", False),
        ("case when page = 'a' then '1 minute' else '5 minutes' end", "window(seen, '1 hour')", False),
    ],
)
def test_a_second_window_beside_sessions(gap: str, group: str, told: bool) -> None:
    found = findings(
        Aggregate, CLICKS, session={"column": "seen", "gap": gap}, group_by={"k": group}, **COUNT
    )
    windows = [finding for finding in found if "two time windows" in finding.message]
    assert [finding.code for finding in windows] == (["GB212"] if told else [])


def test_what_is_known_of_groups_and_aggregates() -> None:
    counted = made(
        Aggregate, group_by=["at", "page"], aggregates={"t": "at", "latest": "max(at)", "n2": "t"}
    ).infer(CLICKS)
    assert counted.columns == (
        AT,
        PAGE,
        Column("t", "timestamp", "10 minutes"),
        Column("latest", "timestamp"),
        Column("n2", "timestamp", "10 minutes"),
    )
    by_name_of_spark = made(Aggregate, group_by=["date(at)"], **COUNT).infer(CLICKS).columns
    assert by_name_of_spark is not None
    assert by_name_of_spark[0].delay is None
    assert made(Aggregate, group_by=["date(at) as d"], **COUNT).infer(CLICKS).columns == (
        Column("d", "date"),
        Column("n", "bigint"),
    )
    assert made(Aggregate, **COUNT).infer(Facts(streaming=True)).columns is None
    static = table_of(PAGE)
    assert made(Aggregate, group_by="page", **COUNT).infer(static) == table_of(PAGE, Column("n", "bigint"))


def test_groups_that_do_not_exist_are_found() -> None:
    first, second = findings(Aggregate, CLICKS, group_by=["pge", "date(gone)"], **COUNT)
    assert (first.option, first.hint) == (("group_by", 0), "Did you mean `page`?")
    assert (second.option, second.message) == (("group_by", 1), "there is no column `gone`")
    (finding,) = findings(Aggregate, CLICKS, window={**MINUTE, "column": "att"}, **COUNT)
    assert (finding.option, finding.hint) == (("window", "column"), "Did you mean `at`?")
    (finding,) = findings(Aggregate, CLICKS, session={"column": "sen", "gap": "1 hour"}, **COUNT)
    assert (finding.option, finding.hint) == (("session", "column"), "Did you mean `seen`?")
    assert findings(Aggregate, CLICKS, group_by={"p": "page"}, **COUNT) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": MINUTE, "session": {"column": "at", "gap": "1 hour"}}, "either `window` or `session`"),
        ({"window": {**MINUTE, "slide": "2 minutes"}}, "`slide` can't be longer"),
        ({"window": {**MINUTE, "start_offset": "60 seconds"}}, "`start_offset` must be shorter"),
        ({"window": {**MINUTE, "slide": "10 seconds", "start_offset": "10 seconds"}}, "must be shorter"),
        ({"window": {**MINUTE, "start_offset": "1 month"}}, "must be shorter"),
        ({"window": {**MINUTE, "duration": "1 month"}}, "months or years"),
        ({"window": {**MINUTE, "duration": "0 minutes"}}, "length zero"),
        ({"window": {**MINUTE, "duration": "10 m"}}, "written out"),
        ({"window": {**MINUTE, "size": "1 minute"}}, "Extra inputs"),
        ({"window": {"duration": "1 minute"}}, "Field required"),
        ({"session": {"column": "at", "gap": 5}}, "a gap needs a unit: `5 seconds`"),
        ({"session": {"column": "at", "gap": "5 mins"}}, "written out"),
        ({"session": {"column": "at", "gap": "-5 minutes"}}, "written out"),
        ({"session": {"column": "at", "gap": "0 minutes"}}, "length zero"),
        ({"session": {"column": "at", "gap": "case when (id"}}, "not a complete SQL expression"),
        ({"aggregates": {}}, "at least 1 item"),
        ({"aggregates": ["count(*)"]}, "valid dictionary"),
        ({"group_by": ["page, id"]}, "more than one expression"),
    ],
    ids=str,
)  # fmt: skip
def test_options_of_an_aggregation_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        made(Aggregate, **{**COUNT, **options})


NO_EQUALITY = "map<string,int>", "variant", "array<struct<a: int, b: map<string, int>>>"


def test_values_that_are_never_equal_have_no_duplicates() -> None:
    for kind in NO_EQUALITY:
        rows = table_of(ID, Column("m", kind))
        for columns in (None, ["id", "M"]):
            (finding,) = findings(Deduplicate, rows, columns=columns)
            assert (finding.code, finding.option) == ("GB213", "columns")
            assert finding.message.startswith("`m` is ")
        assert findings(Deduplicate, rows, columns=["id"]) == []
    assert findings(Deduplicate, table_of(Column("m", "struct<mapped: int>"))) == []


@pytest.mark.spark
def test_spark_finds_no_duplicates_of_them_either(spark: SparkSession) -> None:
    from pyspark.errors import AnalysisException

    made_of = [f"from_json('', 'm {kind}').m as m{n}" for n, kind in enumerate(NO_EQUALITY)]
    df = events(spark, "a", "timestamp as at", "value as id", *made_of, delay="1 minute")
    for column in ("m0", "m1", "m2"):
        with pytest.raises(AnalysisException):
            made(Deduplicate, columns=[column]).apply(df)
    made(Deduplicate, columns=["id"]).apply(df)


def test_deduplication_is_state_on_a_stream() -> None:
    once = made(Deduplicate).infer(CLICKS)
    assert (once, kinds(once)) == (CLICKS, ["deduplicate"])
    assert made(Deduplicate, columns="id, at").infer(table_of(ID)) == table_of(ID)
    with pytest.raises(ValidationError):
        made(Deduplicate, columns=[])


def test_what_is_wrong_with_a_deduplication() -> None:
    (finding,) = findings(Deduplicate, CLICKS, columns=["idd"])
    assert (finding.option, finding.hint) == ("columns", "Did you mean `id`?")
    within = {"columns": ["id"], "within_watermark": True}
    (finding,) = findings(Deduplicate, table_of(ID), **within)
    assert "static relation" in finding.message
    for fine in (CLICKS, Facts(streaming=True), Facts(columns=(ID,))):
        assert findings(Deduplicate, fine, **within) == []
    unsure = stream_of(ID, Column("made", None, UNKNOWN_DELAY))
    assert findings(Deduplicate, unsure, **within) == []


class Clicks:
    """A stream of clicks in steps, through some transforms, over restarts of one query."""

    def __init__(self, spark: SparkSession, folder: Path, *transforms: Transform[Any]) -> None:
        self._files = Folder(spark, folder / "in", "id long, page string, at timestamp")
        self._checkpoint = folder / "checkpoint"
        df: DataFrame = self._files.stream("clicks")
        for transform in transforms:
            df = transform.apply(df)  # type: ignore[assignment]
        self._df = df

    def step(self, *clicks: tuple[int, str, str], mode: str = "append") -> list[Row]:
        """What comes out after these clicks, each with its id, page and time of day."""
        rows = ({"id": n, "page": page, "at": f"2024-01-01 {time}"} for n, page, time in clicks)
        self._files.add(*rows)
        return drain(self._df, self._checkpoint, mode)


WATERMARK = made(Watermark, column="at", delay="10 minutes")


def _times(rows: list[Row], *columns: str) -> list[tuple[Any, ...]]:
    """Windows as times of day, with other columns behind them."""
    found = []
    for row in rows:
        window = row["session_window"] if "session_window" in row else row["window"]
        span = f"{window.start:%H:%M}-{window.end:%H:%M}"
        found.append((span, *(row[column] for column in columns)))
    return sorted(found)


@pytest.mark.spark
def test_a_tumbling_window_comes_out_once_it_is_closed(spark: SparkSession, tmp_path: Path) -> None:
    window = {"column": "at", "duration": "5 minutes"}
    count = made(Aggregate, window=window, group_by=["page"], having="n > 1", **COUNT)
    clicks = Clicks(spark, tmp_path, WATERMARK, count)
    assert clicks.step((1, "a", "10:00"), (2, "a", "10:04"), (3, "b", "10:04"), (4, "a", "10:05")) == []
    # The watermark is now 10:10: windows up to there are closed, that of one click is left out.
    assert _times(clicks.step((5, "c", "10:20")), "page", "n") == [("10:00-10:05", "a", 2)]
    # 10:04 is too late, 10:16 is not.
    assert clicks.step((6, "a", "10:04"), (7, "c", "10:21"), (8, "d", "10:16"), (9, "d", "10:17")) == []
    assert _times(clicks.step((10, "e", "11:00")), "page", "n") == [
        ("10:15-10:20", "d", 2),
        ("10:20-10:25", "c", 2),
    ]


@pytest.mark.spark
def test_a_sliding_window_counts_a_row_several_times(spark: SparkSession, tmp_path: Path) -> None:
    window = {
        "column": "at",
        "duration": "10 minutes",
        "slide": "5 minutes",
        "start_offset": "2 minutes",
    }
    count = made(Aggregate, window=window, **COUNT)
    clicks = Clicks(spark, tmp_path, WATERMARK, count)
    rows = clicks.step((1, "a", "10:03"), (2, "a", "10:08"), mode="update")
    assert _times(rows, "n") == [("09:57-10:07", 1), ("10:02-10:12", 2), ("10:07-10:17", 1)]


@pytest.mark.spark
def test_a_session_ends_when_no_row_comes(spark: SparkSession, tmp_path: Path) -> None:
    session = {
        "column": "at",
        "gap": "case when page = 'video' then '30 minutes' else '5 minutes' end",
    }
    count = made(Aggregate, session=session, group_by={"who": "id"}, **COUNT)
    clicks = Clicks(spark, tmp_path, WATERMARK, count)
    first = [(1, "a", "10:00"), (1, "a", "10:04"), (1, "a", "10:20"), (2, "video", "10:00")]
    assert _times(clicks.step(*first), "who", "n") == [("10:00-10:09", 1, 2)]
    assert _times(clicks.step((3, "a", "12:00")), "who", "n") == [
        ("10:00-10:30", 2, 1),
        ("10:20-10:25", 1, 1),
    ]


@pytest.mark.spark
def test_windows_over_windows(spark: SparkSession, tmp_path: Path) -> None:
    minutes = made(Aggregate, window=MINUTE, group_by=["page"], **COUNT)
    hour = {"column": "window", "duration": "1 hour"}
    hours = made(Aggregate, window=hour, aggregates={"pages": "count(*)", "clicks": "sum(n)"})
    clicks = Clicks(spark, tmp_path, WATERMARK, minutes, hours)
    assert clicks.step((1, "a", "10:00"), (2, "a", "10:00"), (3, "b", "10:30"), (4, "a", "11:00")) == []
    rows = clicks.step((5, "a", "12:30"))
    assert _times(rows, "pages", "clicks") == [("10:00-11:00", 2, 3), ("11:00-12:00", 1, 1)]


@pytest.mark.spark
def test_without_groups_all_rows_are_one_group(spark: SparkSession) -> None:
    total: Any = made(Aggregate, aggregates={"n": "count(*)", "s": "sum(id)"}).apply(spark.range(4))
    assert [tuple(row) for row in total.collect()] == [(4, 6)]
    odd: Any = made(Aggregate, group_by={"odd": "id % 2"}, having="n > 2", **COUNT).apply(spark.range(5))
    assert [tuple(row) for row in odd.collect()] == [(0, 3)]


@pytest.mark.spark
def test_duplicates_within_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    once = made(Deduplicate, columns=["id"], within_watermark=True)
    clicks = Clicks(spark, tmp_path, WATERMARK, once)
    assert len(clicks.step((1, "a", "10:00"), (1, "a", "10:01"), (2, "a", "10:00"))) == 2
    assert clicks.step((1, "b", "10:05"), (2, "b", "10:02")) == []
    assert [row.id for row in clicks.step((3, "c", "10:30"))] == [3]
    # What was seen at 10:01 is forgotten by 10:20: the same id goes through once more.
    assert [row.id for row in clicks.step((1, "d", "10:31"))] == [1]


@pytest.mark.spark
def test_duplicates_of_a_static_relation(spark: SparkSession) -> None:
    df = spark.sql("select * from values (1, 'a'), (1, 'b'), (2, 'a'), (2, 'a') as t(id, page)")
    assert len(made(Deduplicate).apply(df).collect()) == 3  # type: ignore[union-attr]
    by_id: Any = made(Deduplicate, columns="ID").apply(df)
    assert sorted(row.id for row in by_id.collect()) == [1, 2]
    plain: Any = made(Watermark, column="at", delay="1 hour").apply(df.selectExpr("now() as at", "id"))
    assert plain.count() == 4


def test_each_group_decides_which_rows_an_aggregate_gives() -> None:
    def rows(*groups: str) -> str:
        lineage = made(Aggregate, group_by=list(groups), aggregates={"n": "sum(id)"}).lineage(CLICKS)
        assert lineage is not None
        return lineage.rows.rule

    assert (
        len({rows("page", "upper(page) as other"), rows("page", "lower(page) as other"), rows("page")}) == 3
    )


# Of few letters, so that parts of hashes meet; the last two have one hash as a whole. Of names that differ in their
# case alone Spark finds both columns by each.
NAMES = st.lists(
    st.text("abcdé_01", min_size=1, max_size=4) | st.sampled_from(["Aa0", "BB0"]), min_size=1, max_size=40
)


@pytest.mark.spark
@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(NAMES.map(lambda names: list({name.lower(): name for name in names}.values())))
@example([f"c{number}" for number in range(100)])
@example(["Aa0", "BB0", "a", "b", "c"])
def test_keys_of_duplicates_are_in_spark_s_order(spark: SparkSession, names: list[str]) -> None:
    df = spark.range(1).selectExpr(*[f"1 as `{name}`" for name in names]).dropDuplicates()
    keys = df._jdf.queryExecution().analyzed().keys()  # type: ignore[operator]
    assert key_order(names) == [keys.apply(number).name() for number in range(len(names))]


def test_more_than_four_columns_are_kept_in_another_order() -> None:
    columns = [Column(name, "int") for name in ("page", "user", "at", "seen", "referrer", "v0")]
    (one, other) = (
        made(Deduplicate, **options).lineage(stream_of(*columns))
        for options in ({}, {"columns": ["at", "PAGE"]})
    )
    assert [next(iter(key.uses)) for key in one.kept.keys] == [
        *("0:seen", "0:page", "0:at", "0:v0", "0:referrer", "0:user"),
    ]
    assert [next(iter(key.uses)) for key in other.kept.keys] == ["0:at", "0:page"]
