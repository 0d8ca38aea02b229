"""What a record leaves out of options: logins in addresses, what signs them, settings that are secrets."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.changes.canonical import free_mappings, version_of
from gem_bundle.changes.record import Record
from gem_bundle.changes.withheld import SECRET, withheld, without_logins
from gem_bundle.options import Field, Options
from gem_bundle.types import Expression  # noqa: TC001 (pydantic reads the annotations)
from tests.core.changes.edits import plan, verdict

if TYPE_CHECKING:
    from gem_bundle.changes.model import TargetChanges

PIPELINE = """
pipeline: shop
spark:
  spark.sql.streaming.stateStore.providerClass: "a.B?u=https://me:pa55word@h/"
sources:
  files:
    gem: file
    options:
      format: json
      path: "IN"
      schema: "id string, n int"
      spark_options:
        more: "https://me:pa55word@host/x"
        fs.azure.account.key.acc.dfs.core.windows.net: pa55word
        fs.azure.sas.box.acc: pa55word
        ssl.keystore.key: pa55word
        endpoint: "Endpoint=sb://ns.net/;SharedAccessKeyName=all;SharedAccessKey=pa55word="
transforms:
  cleaned:
    gem: python
    input: files
    options:
      function: "json:loads"
      arguments:
        "https://me:pa55word@host/key": 1
        one: "https://me:pa55word@host/x?token=pa55word&page=1"
        list: ["wasbs://box:pa55word@acc/c?sv=1&sig=pa55word", {inner: "jdbc:x://h/d?user=me&password=pa55word"}]
targets:
  out: {gem: file, input: cleaned, options: {format: parquet, path: "OUT"}}
"""


def pipeline(read: str = "s3a://key:pa55word@bucket/in", written: str = "wasbs://box:pa55word@acc/c") -> str:
    return PIPELINE.replace("IN", read).replace("OUT", written)


def test_no_login_that_is_written_out_gets_in_by_any_way() -> None:
    text = json.dumps(asdict(version_of(plan(pipeline(written="wasbs://x@acc/c?sig=pa55word")), "out")))
    assert "pa55word" not in text
    assert "s3a://bucket/in" in text
    assert "https://host/x?token=**********&page=1" in text
    assert "wasbs://box@acc/c" in text


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("s3a://key:pa55word@bucket/in", "s3a://bucket/in"),
        ("s3a://key:pa/55/word@bucket/in", "s3a://bucket/in"),
        ("s3a://key:pa'55@word@bucket/in", "s3a://bucket/in"),
        ("https://token@host/x", "https://host/x"),
        ("mongodb://me:pa55word@h1:27017,h2:27017/db", "mongodb://h1:27017,h2:27017/db"),
        # The name before `@` is the container.
        ("abfss://raw@acc.dfs.core.windows.net/in", "abfss://raw@acc.dfs.core.windows.net/in"),
        ("wasbs://raw:pa55word@acc/in", "wasbs://raw@acc/in"),
        ("jdbc:oracle:thin:scott/pa55word@host:1521/db", "jdbc:oracle:thin:@host:1521/db"),
        ("jdbc:sqlserver://h;user=me;password=pa55word;x=1", "jdbc:sqlserver://h;user=me;password=**********;x=1"),
        ("https://h/x?a=1&sig=pa55word&se=2026", "https://h/x"),
        ("https://h/x?X-Amz-Date=1&X-Amz-Signature=pa55word#here", "https://h/x"),
        ("https://h/x?api_key=pa55word", "https://h/x?api_key=**********"),
        ("AccountName=a;AccountKey=pa55word==;B=c", "AccountName=a;AccountKey=**********;B=c"),
        ("AccountKey=pa55word==;AccountName=a", "AccountKey=**********;AccountName=a"),
        ("jdbc:sqlserver://h;user=me;password={pa;55;word};x=1", "jdbc:sqlserver://h;user=me;password=**********;x=1"),
        ("jdbc:sqlserver://h;password=pa 55word;x=1", "jdbc:sqlserver://h;password=**********;x=1"),
        ("jdbc:mysql://h/d?password=pa 55word&x=1", "jdbc:mysql://h/d?password=**********&x=1"),
        ("Server=h;User Id=me;Password=pa 55word;X=1", "Server=h;User Id=me;Password=**********;X=1"),
        ("Server=h;Pwd={pa;55;word};X=1", "Server=h;Pwd=**********;X=1"),
        ('jdbc:oracle:thin:scott/"pa@55/word"@h:1521/db', "jdbc:oracle:thin:@h:1521/db"),
        ("jdbc:databricks://h:443;AuthMech=11;OAuthPvtKey=pa55word", "jdbc:databricks://h:443;AuthMech=11;OAuthPvtKey=**********"),
        ("https://h/x#access_token=pa55word&page=1", "https://h/x#access_token=**********&page=1"),
        ("https://h/x?passcode=pa55word&page=1", "https://h/x?passcode=**********&page=1"),
        ("https://h/x?pat=pa55word", "https://h/x?pat=**********"),
        ("user=me password=pa55word host=h", "user=me password=********** host=h"),
        ("user=me password='pa 55\\'word' host=h", "user=me password=********** host=h"),
        ("copy 'https://me:pa55word@h/x' and 'http://b'", "copy 'https://h/x' and 'http://b'"),
    ],
)  # fmt: skip
def test_logins_and_signatures_are_left_out(given: str, kept: str) -> None:
    assert without_logins(given) == kept
    assert without_logins(kept) == kept


@pytest.mark.parametrize(
    "text",
    [
        "https://host:8080/path/a@b",
        "https://h/users/{id}?fields=name&units=metric&key={key}",
        "http://[::1]:80/a@b",
        "kafka://b1:9092/clicks",
        "b1:9092,b2:9092",
        "url like '%?key=a%' and token = 'x'",
        "concat('http://', host, '@')",
        "regexp_extract(url, '[?&]token=([^&]+)', 1)",
        "me@example.com",
        "/data/a;key=b",
        "token=x and n=1",
        "password = 'x' or token = 'y'",
        "jdbc:sqlserver://h;databaseName={a;b};encrypt=true",
        "https://h/x?path=a&pattern=b#key",
    ],
)
def test_what_is_no_secret_stays_so_that_it_can_be_compared(text: str) -> None:
    assert without_logins(text) == text


@pytest.mark.parametrize(
    "name", ["X-Auth-Key", "X-Functions-Key", "spark.cosmos.masterKey", "cosmosKey", "passcode"]
)
def test_a_setting_that_is_called_as_a_key_to_a_service_is_left_out(name: str) -> None:
    assert withheld({"headers": {name: "pa55word"}}) == {"headers": {name: SECRET}}


@pytest.mark.parametrize("name", ["partition_key", "primary.key", "master", "functions", "author", "keys"])
def test_a_setting_that_is_called_otherwise_stays(name: str) -> None:
    assert withheld({"settings": {name: "a"}}) == {"settings": {name: "a"}}


def test_settings_that_are_secrets_are_left_out_and_markers_stay() -> None:
    given = {"settings": {"a.secret": "x", "b": SECRET, "c": 1}, "more": SECRET, "none": None}
    assert withheld(given) == {
        "settings": {"a.secret": SECRET, "b": SECRET, "c": 1},
        "more": SECRET,
        "none": None,
    }


WRITTEN_OUT = """
pipeline: shop
sources: {clicks: {gem: file, options: {format: json, path: data, schema: "id string, password string, token string"}}}
transforms:
  cleaned:
    gem: python
    input: clicks
    options:
      function: "json:loads"
      arguments: {password: pa55word, db: {token: pa55word, logins: [{jwt: pa55word}]}, limit: 1, use_token: true}
  called:
    gem: rest_enrich
    input: cleaned
    options: {url: "https://h/{id}", schema: "n int", headers: {X-Api-Key: pa55word, Accept-Language: en}}
  hashed: {gem: with_columns, input: called, options: {columns: {secret: "md5(password)"}}}
  renamed: {gem: rename, input: hashed, options: {columns: {token: called}}}
targets:
  out:
    gem: delta
    input: renamed
    options: {path: out, spark_options: {Authorization: "Basic pa55word", kafka.x.auth: pa55word, mode: fast}}
"""


def test_what_is_called_as_secrets_are_is_left_out_wherever_users_give_the_names() -> None:
    version = version_of(plan(WRITTEN_OUT), "out")
    assert "pa55word" not in json.dumps(asdict(version))
    options = {node.id: node.options for node in version.nodes}
    assert options["cleaned"]["arguments"] == {
        "password": SECRET,
        "db": {"token": SECRET, "logins": [{"jwt": SECRET}]},
        "limit": 1,
        "use_token": True,
    }
    assert options["called"]["headers"] == {"X-Api-Key": SECRET, "Accept-Language": "en"}
    assert options["out"]["spark_options"]["mode"] == "fast"
    # Columns may be called as they like.
    assert options["hashed"]["columns"] == {"secret": "md5(password)"}
    assert options["renamed"]["columns"] == {"token": "called"}


def test_another_secret_is_no_change_and_another_switch_is_one() -> None:
    assert verdict(WRITTEN_OUT, WRITTEN_OUT.replace("pa55word", "other")).changes == ()
    found = verdict(WRITTEN_OUT, WRITTEN_OUT.replace("use_token: true", "use_token: false"))
    assert [(change.code, change.node) for change in found.changes] == [("GB423", "cleaned")]


class Free(Options):
    """Options of a gem that somebody else has written."""

    properties: dict[str, Any] = Field({}, description="Passed on.")
    limits: dict[str, str | int] | None = Field(None, description="Passed on.")
    columns: dict[str, Expression] = Field({}, description="Columns.")
    rows: list[dict[str, Any]] = Field([], description="Rows.")


def test_mappings_of_anything_are_told_from_those_of_columns_by_their_type() -> None:
    assert free_mappings(Free) == {"properties", "limits"}
    given = {"properties": {"token": "x"}, "columns": {"token": "x"}}
    kept = {"properties": {"token": SECRET}, "columns": {"token": "x"}}
    assert withheld(given, free_mappings(Free)) == kept


def told(found: TargetChanges) -> list[tuple[str, Any, Any]]:
    return [(change.code, change.before, change.after) for change in found.changes]


def test_another_login_is_no_change_and_another_place_is_one() -> None:
    other = "s3a://other:secret@bucket/in"
    assert verdict(pipeline(), pipeline(other)).changes == ()
    found = verdict(pipeline(), pipeline("s3a://key:pa55word@bucket2/in"))
    assert told(found) == [("GB414", "s3a://bucket/in", "s3a://bucket2/in")]
    raw, other = (f"abfss://{box}@acc.net/in" for box in ("raw", "other"))
    assert told(verdict(pipeline(raw), pipeline(other))) == [("GB414", raw, other)]


def test_what_older_records_have_is_read_without_it() -> None:
    raw, box = "s3a://key:pa55word@bucket/in", "abfss://raw@acc.net/out"
    version = version_of(plan(pipeline(raw, box)), "out")
    content = json.loads(Record("out", (version,)).as_json())
    nodes = {node["id"]: node for node in content["versions"][0]["nodes"]}
    nodes["files"]["options"]["path"] = raw
    nodes["files"]["options"]["spark_options"]["ssl.keystore.key"] = "pa55word"
    # Containers were left out as logins are.
    nodes["out"]["places"]["path"] = ["abfss://acc.net/out"]
    read = Record.from_json(json.dumps(content)).newest
    assert read is not None
    assert read.is_same(version)
