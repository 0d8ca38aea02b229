"""No verdict shows a secret, whichever option it stands in, however it came there and however it is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from yaml import safe_dump

if TYPE_CHECKING:
    from pathlib import Path

    from tests.core.cli.conftest import Cli

SECRET = "geheim"
JDBC = "jdbc:postgresql://h/d"
TABLE = {"table": "t"}
LAKE = {"table": "lake.web.t"}
LOOKED_UP = {"schema": "name string"}


def catalog(**given: Any) -> dict[str, Any]:
    kind = {"kind": "jdbc", "warehouse": "w", "uri": JDBC}
    return {"table": "lake.web.t", "catalog": {**kind, **given}}


REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("targets", "jdbc", {**TABLE, "url": f"{JDBC}?user=u&password={SECRET}"}, "by `password`"),
    ("targets", "jdbc", {**TABLE, "url": f"{JDBC}?sslpassword={SECRET}"}, "`sslpassword: ${secret:…}`"),
    ("targets", "jdbc", {**TABLE, "url": f"{JDBC};trustStorePassword={SECRET};a=b"}, "`trustStorePassword"),
    ("targets", "jdbc", {**TABLE, "url": f"jdbc:oracle:thin:scott/{SECRET}@//h/d"}, "by `password`"),
    ("targets", "jdbc", {**TABLE, "url": f"jdbc:mysql://u:{SECRET}@h/d"}, "by `password`"),
    ("targets", "jdbc", {**TABLE, "url": f"postgresql://u:{SECRET}@h/d"}, "by `password`"),
    (
        "targets",
        "jdbc",
        {**TABLE, "url": JDBC, "spark_options": {"password": SECRET}},
        "the option `password`",
    ),
    ("targets", "jdbc", {**TABLE, "url": JDBC, "num_partitions": f"//u:{SECRET}@h"}, "with a login in it"),
    ("targets", "table", catalog(uri=f"{JDBC}?password={SECRET}"), "by `password`, `token`"),
    ("targets", "table", catalog(uri=f"{JDBC}?sslpassword={SECRET}"), "`jdbc.sslpassword: ${secret:…}`"),
    ("targets", "table", catalog(settings={"jdbc.password": SECRET}), "the option `password`"),
    (
        "targets",
        "table",
        catalog(kind="rest", uri="http://h", settings={"token": SECRET}),
        "the option `token`",
    ),
    ("targets", "table", catalog(password=[SECRET]), "must be a text"),
    ("transforms", "from_avro", {"registry": f"http://ann:{SECRET}@h:1", "topic": "t"}, "`registry_user`"),
    ("transforms", "from_avro", {"registry": f"http://{SECRET}@h:1", "topic": "t"}, "`registry_user`"),
    ("transforms", "from_avro", {"registry": f"ann:{SECRET}@h:1", "topic": "t"}, "`registry_user`"),
    ("transforms", "to_avro", {"registry": ["http://h", f"ftp://ann:{SECRET}@h"]}, "`registry_user`"),
    ("transforms", "rest_enrich", {**LOOKED_UP, "url": f"https://u:{SECRET}@h/a"}, "by `token`, or by"),
    ("transforms", "rest_enrich", {**LOOKED_UP, "url": f"https://{SECRET}@h/a"}, "by `token`, or by"),
    ("transforms", "rest_enrich", {**LOOKED_UP, "url": f"https://h/a?token={SECRET}&a={{"}, "as `{name}`"),
    ("sources", "kafka", {"subscribe": "t", "bootstrap_servers": f"sasl://u:{SECRET}@h:1"}, "`host:port`"),
]


def written(folder: Path, section: str, gem: str, options: dict[str, Any]) -> str:
    whole: dict[str, Any] = {
        "pipeline": "p",
        "sources": {"ticks": {"gem": "rate"}},
        "transforms": {},
        "targets": {"screen": {"gem": "console", "input": "ticks"}},
    }
    node = {"gem": gem, "options": options} | ({} if section == "sources" else {"input": "ticks"})
    whole[section]["n"] = node
    if section != "targets":
        whole["targets"]["out"] = {"gem": "console", "input": "n"}
    file = folder / "p.yaml"
    file.write_text(safe_dump({key: value for key, value in whole.items() if value}))
    return str(file)


@pytest.mark.parametrize(
    ("section", "gem", "options", "why"),
    REFUSED,
    ids=[f"{gem}-{n}" for n, (_, gem, *_) in enumerate(REFUSED)],
)
def test_a_message_that_forbids_a_secret_does_not_show_it(
    cli: Cli, tmp_path: Path, section: str, gem: str, options: dict[str, Any], why: str
) -> None:
    file = written(tmp_path, section, gem, options)
    for form in ("text", "json", "sarif", "github"):
        result = cli("check", "--debug", "--format", form, file)
        assert result.exit_code == 1
        said = result.stdout + result.stderr
        assert why.replace('"', '\\"') in said
        assert SECRET not in said


@pytest.mark.parametrize(
    "url", ["${env:DATABASE}", f"{JDBC}?password=${{env:PASSWORD}}", f"{JDBC}?password=${{secret:db/word}}"]
)
def test_a_secret_from_elsewhere_is_not_shown_either(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("DATABASE", f"{JDBC}?user=u&password={SECRET}")
    monkeypatch.setenv("PASSWORD", SECRET)
    monkeypatch.setenv("GEM_BUNDLE_SECRET_DB_WORD", SECRET)
    file = written(tmp_path, "targets", "jdbc", {**TABLE, "url": url})

    for command in (("check", "--debug"), ("run", "--debug")):
        result = cli(*command, file)
        assert result.exit_code == 1
        assert "give it by `password`" in result.stdout + result.stderr
        assert SECRET not in result.stdout + result.stderr


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:mysql://h/d?passwordCharacterEncoding=UTF-8&allowPublicKeyRetrieval=true",
        f"{JDBC}?sslpasswordcallback=org.example.Callback&sslkey=/keys/token.pk8&password=",
        "jdbc:sqlserver://h:1433;databaseName=d;encrypt=true;useToken=false",
        "jdbc:oracle:thin:@//h:1521/d",
    ],
)
def test_an_address_without_a_secret_is_taken(cli: Cli, tmp_path: Path, url: str) -> None:
    file = written(tmp_path, "targets", "jdbc", {**TABLE, "url": url, "driver": "a.B"})
    assert "would be printed" not in cli("check", file).output
