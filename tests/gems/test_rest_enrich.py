"""The transform `rest_enrich`, against a real server."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import Column, Facts, PassingError, UnreachableError
from gem_bundle.rejected import Rejecting, read_ending, rejected_rows
from gem_rest import calling
from gem_rest.calling import Calls, Outcome
from gem_rest.options import pieces_of
from gem_rest.rest_enrich import RestEnrich
from tests.clock import set_clock
from tests.core.checking import check
from tests.gems.transforms import findings, made, stream_of
from tests.integration.pipelines import add_rows, run, write_pipeline
from tests.samples import some_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.rest_service import RestService

a_service = some_of("answers of a service", 1)

OPTIONS: dict[str, Any] = {"url": "https://api.example.com/users/{id}", "schema": "name string, score double"}
FAST = Calls("GET", backoff=0.001, timeout=30, retries=2)


@pytest.fixture
def service(rest_service: RestService) -> RestService:
    """The service of this test."""
    return rest_service


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({"url": "api.example.com/{id}"}, "https://host/path"),
        ({"url": "https://{host}/x"}, "https://host/path"),
        ({"url": "https://ada:pw@host/x"}, "by `token`, or by `user`"),
        ({"url": "https://host/{}"}, "write a column as"),
        ({"url": "https://host/{id"}, "write a column as"),
        ({"url": "https://host/id}"}, "write a column as"),
        ({"schema": ""}, "schema"),
        ({"body": {"a": "id"}}, "has no `body`"),
        ({"method": "POST", "cache": 9}, "`cache` is for `method: GET`"),
        ({"token": "t", "user": "u"}, "not both"),
        ({"password": "p"}, "a user's"),
        ({"api_key_header": "X-Key"}, "no effect without `api_key`"),
        ({"headers": {"Authorization": "x"}}, "logins have"),
        ({"headers": {"X-A": "a\r\nX-B: b"}}, "can't be a header"),
        ({"unreachable": "reject"}, "needs `rejects: true`"),
        ({"per_second": 0}, "greater than 0"),
    ],
)
def test_options_that_are_refused(raw: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        made(RestEnrich, **{**OPTIONS, **raw})


def test_an_address_is_made_of_texts_and_columns() -> None:
    assert pieces_of("https://h/a{{b}}/{ id }?x={y.z}") == [
        ("https://h/a{b}/", "id"),
        ("?x=", "y.z"),
        ("", None),
    ]


def test_columns_and_what_is_wrong_with_them() -> None:
    given = stream_of(Column("id", "int"), Column("answer", "string"))
    found = made(RestEnrich, **OPTIONS).infer(given)
    assert found == stream_of(
        Column("id", "int"), Column("answer", "struct<`name`: string, `score`: double>")
    )
    assert made(RestEnrich, **OPTIONS).infer(Facts()).columns is None
    (missing,) = findings(RestEnrich, given, **{**OPTIONS, "url": "https://h/{idd}"})
    assert (missing.code, missing.option) == ("GB210", "url")
    body = {"body": {"n": "id", "x": "nothing + 1"}, "method": "POST"}
    (missing,) = findings(RestEnrich, given, **OPTIONS, **body)
    assert (missing.code, missing.option) == ("GB210", ("body", "x"))


def test_logins_are_headers_and_shown_nowhere() -> None:
    def headers(**raw: Any) -> dict[str, str]:
        gem = made(RestEnrich, **OPTIONS, **raw)
        calls = gem.options.calls()
        assert "s3cr3t" not in f"{calls!r} {gem.options!r}"
        return dict(calls.headers)

    assert headers(token="s3cr3t")["Authorization"] == "Bearer s3cr3t"
    assert headers(user="ada", password="s3cr3t")["Authorization"] == "Basic YWRhOnMzY3IzdA=="
    assert headers(api_key="s3cr3t")["X-Api-Key"] == "s3cr3t"
    assert headers(api_key="s3cr3t", api_key_header="Key", headers={"A": "b"}).items() >= {
        ("Key", "s3cr3t"),
        ("A", "b"),
    }


# Calls


@pytest.mark.servers
def test_an_answer_is_taken_as_it_is(service: RestService) -> None:
    answered = FAST.one(f"{service.url}/users/7", None)
    assert answered == Outcome('{"name": "user 7", "score": 1.5, "sent": null}')
    assert FAST.one(f"{service.url}/empty", None) == Outcome()
    assert len(service.asked) == 2


@pytest.mark.parametrize(
    ("path", "name", "tries"),
    [
        ("404/7", "http_404", 1),
        ("400/7", "http_400", 1),
        ("302/7", "http_302", 1),
        ("text", "not_json", 1),
        ("list", "not_an_object", 1),
        ("500/7", "unreachable", 3),
        ("closed/7", "unreachable", 3),
        ("cut/7", "unreachable", 3),
        ("busy/9/7", "unreachable", 3),
    ],
)
@pytest.mark.servers
def test_a_call_that_fails_is_a_reason_or_ends_the_query(
    service: RestService, path: str, name: str, tries: int
) -> None:
    url = f"{service.url}/{path}"
    lenient = Calls("GET", backoff=0.001, timeout=30, retries=2, rejects=True, rejects_unreachable=True)
    found = lenient.one(url, None)
    assert (found.body, found.name) == (None, name)
    assert found.words
    assert len(service.asked) == tries
    passing = name == "unreachable"
    with pytest.raises(PassingError if passing else UnreachableError) as caught:
        FAST.one(url, None)
    assert isinstance(caught.value, PassingError) == passing
    if passing:  # a service that is down says nothing of a row
        with pytest.raises(PassingError):
            Calls("GET", backoff=0.001, timeout=30, retries=0, rejects=True).one(url, None)


@pytest.mark.servers
def test_a_service_that_does_not_answer_in_time(service: RestService) -> None:
    with pytest.raises(PassingError, match=r"no answer within 0\.05 seconds, asked twice|asked 2 times"):
        Calls("GET", backoff=0.001, timeout=0.05, retries=1).one(f"{service.url}/slow/7", None)
    with pytest.raises(PassingError, match="refused"):
        Calls("GET", retries=0).one("http://127.0.0.1:1/x", None)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.servers
def test_a_login_that_is_refused_rejects_no_row(service: RestService, status: int) -> None:
    calls = Calls("GET", (("Authorization", "Bearer s3cr3t"),), rejects=True, rejects_unreachable=True)
    with pytest.raises(UnreachableError, match="the login is refused") as caught:
        calls.one(f"{service.url}/{status}/s3cr3t", None)
    assert not isinstance(caught.value, PassingError)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("path", ["flaky/2/7", "busy/2/7"])
@pytest.mark.servers
def test_a_call_is_tried_again(service: RestService, path: str) -> None:
    found = FAST.one(f"{service.url}/{path}", None)
    assert found.name is None
    assert len(service.asked) == 3


@pytest.mark.servers
def test_waits_grow_and_hold_to_what_the_service_asks(
    service: RestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    set_clock(monkeypatch, calling, sleep=waited.append)
    calls = Calls("GET", backoff=0.5, retries=8, rejects=True, rejects_unreachable=True)
    calls.one(f"{service.url}/500/7", None)
    assert waited == [0.5, 1, 2, 4, 8, 16, 30, 30]
    waited.clear()
    service.retry_after = "7"
    assert calls.one(f"{service.url}/busy/3/7", None).name is None
    assert waited == [7, 7, 7]
    service.retry_after = "61"
    waited.clear()
    assert calls.one(f"{service.url}/busy/1/8", None).name == "unreachable"
    assert waited == []


def test_retry_after_is_seconds_or_a_moment() -> None:
    assert calling._seconds("12") == 12
    assert calling._seconds("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert [calling._seconds(text) for text in (None, "soon", "-1")] == [None, None, None]


def asked(url: str, *numbers: int) -> list[tuple[str | None, str | None]]:
    return [(f"{url}/users/{number}", None) for number in numbers]


@pytest.mark.servers
def test_answers_keep_the_order_of_rows_and_are_under_way_together(service: RestService) -> None:
    service.together = threading.Barrier(3)
    calls = Calls("GET", timeout=30, concurrency=3)
    batches = list(calls.all_of([asked(service.url, 1, 2, 3), asked(service.url, 4, 5, 6)]))
    assert [[(one.body or "")[10:16] for one in found] for found in batches] == [
        ["user 1", "user 2", "user 3"],
        ["user 4", "user 5", "user 6"],
    ]
    assert service.most == 3


@pytest.mark.servers
def test_the_same_request_is_made_once_and_so_many_are_remembered(service: RestService) -> None:
    calls = Calls("GET", timeout=30, concurrency=1, cache=2)
    batches = [asked(service.url, 1, 1, 2), asked(service.url, 1, 3), asked(service.url, 1, 2)]
    assert [len(found) for found in calls.all_of(batches)] == [3, 2, 2]
    assert service.paths() == [f"/users/{number}" for number in (1, 2, 3, 2)]
    failing = [[(f"{service.url}/404/1", None)]] * 2
    list(Calls("GET", timeout=30, cache=2, rejects=True).all_of(failing))
    assert service.paths()[4:] == ["/404/1"] * 2, "what failed may be there a little later"
    again = [asked(service.url, 9, 9)]
    list(Calls("GET", timeout=30, concurrency=1).all_of(again))
    assert service.paths()[6:] == ["/users/9"] * 2


@pytest.mark.servers
def test_requests_begin_no_faster_than_they_may(
    service: RestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    waited: list[float] = []
    set_clock(monkeypatch, calling, monotonic=lambda: now[0], sleep=waited.append)
    list(Calls("GET", timeout=30, concurrency=1, per_second=4).all_of([asked(service.url, 1, 2, 3)]))
    assert waited == [0, 0.25, 0.5]


# In Spark

BAD = ["404/1", "400/2", "text", "list", "wrong", None]
GOOD = ["users/a b%c", "empty", "flaky/1/x", "busy/2/y"]


def rows(spark: SparkSession, paths: list[str | None]) -> DataFrame:
    return spark.createDataFrame(list(enumerate(paths)), "id int, path string").repartition(2)


def enrich(service: RestService, **raw: Any) -> RestEnrich:
    given = {
        "url": service.url + "/{path}",
        "schema": "name string, score double",
        "backoff": "1 millisecond",
        **raw,
    }
    gem = made(RestEnrich, **given)
    gem.node = "enriched"
    return gem


@pytest.fixture
def whole_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slashes of a test's paths stay: of a column they would be escaped."""
    from pyspark.sql import functions as F  # noqa: N812

    monkeypatch.setattr(F, "url_encode", lambda column: F.replace(column, F.lit(" "), F.lit("+")))


@pytest.mark.spark
@pytest.mark.matrix
def test_each_row_has_its_answer_or_its_reason(
    spark: SparkSession, service: RestService, whole_paths: None
) -> None:
    gem = enrich(service, rejects=True, token="s3cr3t")
    df = gem.settle(rows(spark, [*BAD, *GOOD])).localCheckpoint()
    before = len(service.asked)
    kept = {row["path"]: row["answer"] for row in gem.apply(df).collect()}
    assert gem.apply(df).columns == ["id", "path", "answer"]
    assert set(kept) == set(GOOD)
    assert kept["empty"] is None
    assert tuple(kept["flaky/1/x"]) == ("user x", 1.5)
    told = rejected_rows(gem.reject(df), Rejecting("p", "1", "enriched", "rest_enrich")).collect()
    names = [row["reasons"][0]["name"] for row in told]
    assert sorted(names) == sorted(
        ["http_404", "http_400", "not_json", "not_an_object", "wrong_type", "no_value"]
    )
    assert "__gem_bundle" not in "".join(row["row"] for row in told)
    assert len(service.asked) == before, "what was found out isn't asked again"
    assert service.headers["Authorization"] == "Bearer s3cr3t"


@pytest.mark.spark
@pytest.mark.matrix
def test_a_column_is_escaped_and_a_body_is_json(spark: SparkSession, service: RestService) -> None:
    df = spark.createDataFrame([(1, "a b/c?d&é%")], "id int, path string")
    (row,) = enrich(service).apply(df).collect()
    assert service.paths() == ["/a%20b%2Fc%3Fd%26%C3%A9%25"]
    assert row["answer"]["name"] == "user c?d&é%"
    post = enrich(
        service,
        url=service.url + "/users/{id}",
        method="POST",
        body={"id": "id", "up": "upper(path)", "none": "cast(null as int)"},
        schema="sent struct<id: int, up: string, none: int>",
    )
    (row,) = post.apply(df).collect()
    assert service.asked[-1] == ("POST /users/1", {"id": 1, "up": "A B/C?D&É%", "none": None})
    assert tuple(row["answer"]["sent"]) == (1, "A B/C?D&É%", None)


@pytest.mark.spark
def test_one_that_only_looks_posts_nothing(spark: SparkSession, service: RestService) -> None:
    df = spark.createDataFrame([(1, "x")], "id int, path string")
    post = enrich(service, method="POST", rejects=True).for_preview()
    assert [row["answer"] for row in post.apply(df).collect()] == [None]
    assert service.asked == []
    assert enrich(service).for_preview().apply(df).count() == 1
    wrong = enrich(service, method="POST", body={"id": "nothing"}).for_preview()
    with pytest.raises(Exception, match="nothing"):
        _ = wrong.apply(df).schema


@a_service
@pytest.mark.spark
def test_without_an_output_for_it_a_failure_ends_the_query(
    spark: SparkSession, service: RestService, whole_paths: None
) -> None:
    for path, words in [("404/1", "HTTP 404"), ("text", "isn't JSON"), (None, "is null")]:
        with pytest.raises(Exception, match=words):
            enrich(service).apply(rows(spark, [path])).collect()
    with pytest.raises(Exception, match="doesn't fit") as caught:
        enrich(service).apply(rows(spark, ["wrong"])).collect()
    ended = read_ending(str(caught.value))
    assert ended is not None
    assert ended.node == "enriched"


PIPELINE = """
pipeline: enriching
sources:
  users: {{gem: file, options: {{format: json, path: in, schema: "id int"}}}}
transforms:
  enriched:
    gem: rest_enrich
    input: users
    options:
      url: "{url}/turn/{{id}}"
      schema: "name string"
      rejects: true
targets:
  good: {{gem: delta, input: enriched, group: both, trigger: {{available_now: true}}, options: {{path: good}}}}
  bad: {{gem: {bad}, input: enriched.rejected, group: both, trigger: {{available_now: true}}, options: {{{options}}}}}
"""


@a_service
@pytest.mark.spark
def test_a_micro_batch_that_comes_again_gets_what_was_answered_first(
    spark: SparkSession, service: RestService, tmp_path: Path, user_modules: Path
) -> None:
    """The service answers once and then with 404: asked again, each row would be rejected too."""
    (user_modules / "enriching_fails.py").write_text("def fail(df, batch_id):\n    raise ValueError('no')\n")
    text = PIPELINE.format(
        url=service.url, bad="foreach_batch", options='function: "enriching_fails:fail", idempotent: true'
    )
    add_rows(tmp_path / "in", "1.json", [{"id": number} for number in range(5)])
    file = write_pipeline(tmp_path, text)
    assert run(file).status == "failed"
    assert spark.read.format("delta").load(str(tmp_path / "good")).count() == 5
    (user_modules / "enriching_fails.py").write_text(
        "def fail(df, batch_id):\n    assert df.count() == 0, df.collect()\n"
    )
    import sys

    sys.modules.pop("enriching_fails", None)
    assert run(file).status == "finished"
    assert spark.read.format("delta").load(str(tmp_path / "good")).count() == 5
    assert len(service.asked) == 5
    add_rows(tmp_path / "in", "2.json", [{"id": 7}])
    assert run(file).status == "finished"
    assert spark.read.format("delta").load(str(tmp_path / "good")).count() == 6
    assert len(service.asked) == 6


@a_service
@pytest.mark.spark
def test_a_batch_asks_once_for_both_outputs(
    spark: SparkSession, service: RestService, tmp_path: Path
) -> None:
    text = PIPELINE.format(url=service.url, bad="delta", options="path: bad")
    text = text.replace("pipeline: enriching", "pipeline: enriching\nmode: batch")
    text = text.replace(", group: both, trigger: {available_now: true}", "")
    add_rows(tmp_path / "in", "1.json", [{"id": number} for number in range(5)])
    assert run(write_pipeline(tmp_path, text)).status == "finished"
    assert spark.read.format("delta").load(str(tmp_path / "good")).count() == 5
    assert spark.read.format("delta").load(str(tmp_path / "bad")).count() == 0
    assert len(service.asked) == 5


def test_both_outputs_of_a_stream_take_a_group() -> None:
    text = """
pipeline: p
sources: {a: {gem: any}}
transforms:
  e: {gem: rest_enrich, input: a, options: {url: "https://h/x", schema: "n int", rejects: true}}
targets:
  good: {gem: any, input: e}
  bad: {gem: any, input: e.rejected}
"""
    checked = check(text, transform_rest_enrich=RestEnrich)
    assert ("GB387", "e") in [(d.code, d.node) for d in checked.diagnostics]
    assert "`good`, `bad`" in next(d.message for d in checked.diagnostics if d.code == "GB387")
    text = text.replace("{gem: any, input: e", "{gem: any, group: g, input: e")
    assert "GB387" not in [d.code for d in check(text, transform_rest_enrich=RestEnrich).diagnostics]
