"""What others may see of a pipeline: all of its graph, and none of its secrets."""

from __future__ import annotations

import http.client
import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast

import pytest

from gem_bundle.check.checker import check_definition
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.pipeline.loader import LoadOptions, load_file
from gem_bundle.pipeline.secrets import HIDDEN, SecretStore
from gem_bundle.run.options import ServeOptions
from gem_bundle.run.serving.drawn import Drawn, draw
from gem_bundle.run.serving.server import RunServer
from tests.core.run.test_recorder import Run

if TYPE_CHECKING:
    from pathlib import Path


PIPELINE = """\
pipeline: shop
parameters:
  db_password: s3cr3t-of-a-parameter
  table: orders
  given: {type: string, default: nothing}
sources:
  orders:
    gem: kafka
    description: Mind that s3cr3t-of-the-file opens it.
    options:
      bootstrap_servers: "${env:SHOP_BROKERS}:9092"
      subscribe: orders
      spark_options:
        kafka.interceptor.password: s3cr3t-of-the-file
        kafka.sasl.jaas.config: "${secret:shop/jaas}"
transforms:
  parsed:
    gem: from_json
    input: orders
    options: {column: value, schema: "id bigint, at timestamp", rejects: true}
  timely: {gem: watermark, input: parsed, options: {column: at, delay: 5 minutes}}
targets:
  table:
    gem: jdbc
    input: timely
    options:
      url: jdbc:postgresql://db/shop
      user: shop
      password: "${db_password}"
      table: "${table}"
  bad: {gem: console, input: parsed.rejected}
"""
SECRETS = {
    "s3cr3t-of-a-parameter",
    "s3cr3t-of-the-file",
    "s3cr3t-of-the-store",
    "brokers-of-the-environment",
    "s3cr3t-of-the-command-line",
}
ENVIRONMENT = {
    "GEM_BUNDLE_SECRET_SHOP_JAAS": "s3cr3t-of-the-store",
    "SHOP_BROKERS": "brokers-of-the-environment",
}


def drawn(file: Path, text: str = PIPELINE, **parameters: Any) -> Drawn:
    file.write_text(text)
    options = LoadOptions(parameters, environment=ENVIRONMENT, secrets=SecretStore(ENVIRONMENT))
    checked = check_definition(load_file(file, options))
    assert checked.known is not None
    return draw(checked.known, checked.diagnostics)


def test_nodes_with_what_flows_between_them(tmp_path: Path) -> None:
    found = drawn(tmp_path / "shop.yaml").content
    nodes = {node["id"]: node for node in found["nodes"]}
    assert list(nodes) == ["orders", "parsed", "timely", "table", "bad"]
    assert nodes["parsed"]["options"] == {
        "column": "value",
        "schema": "id bigint, at timestamp",
        "rejects": True,
    }
    assert nodes["bad"]["inputs"] == [{"node": "parsed", "output": "rejected", "name": "rejected"}]
    (output,) = nodes["timely"]["outputs"]
    assert output == {
        "output": "",
        "streaming": True,
        "columns": [
            {"name": "id", "type": "bigint", "watermark": None},
            {"name": "at", "type": "timestamp", "watermark": "5 minutes"},
        ],
    }
    assert [output["output"] for output in nodes["parsed"]["outputs"]] == ["", "rejected"]
    assert (nodes["table"]["output_mode"], nodes["table"]["trigger"]) == ("append", "default")
    assert json.loads(json.dumps(found)) == found


def test_no_secret_and_no_environment_is_in_it(tmp_path: Path) -> None:
    text = PIPELINE.replace("${db_password}", "${given}")
    usual = SECRETS - {"s3cr3t-of-the-command-line"}
    for found, secrets in (
        (drawn(tmp_path / "shop.yaml"), usual),
        (drawn(tmp_path / "shop.yaml", text, given="s3cr3t-of-the-command-line"), SECRETS),
        # What can't be run, and whose gems aren't known then, is as careful.
        (drawn(tmp_path / "shop.yaml", PIPELINE.replace("gem: watermark", "gem: watermrak")), usual),
    ):
        written = json.dumps(found.content)
        assert [secret for secret in SECRETS if secret in written] == []
        failure = {
            "message": f"it failed with {sorted(secrets)}",
            "hint": f"{sorted(secrets)}",
            "code": "GB507",
        }
        (told,) = found.without_secrets([failure])
        assert [secret for secret in SECRETS if secret in str(told)] == []
    nodes = {node["id"]: node for node in drawn(tmp_path / "shop.yaml").content["nodes"]}
    assert nodes["table"]["options"] == {
        "url": "jdbc:postgresql://db/shop",
        "user": "shop",
        "password": "${db_password}",
        "table": "${table}",
    }
    assert nodes["orders"]["options"]["bootstrap_servers"] == "${env:SHOP_BROKERS}:9092"
    assert nodes["orders"]["options"]["spark_options"] == {
        "kafka.interceptor.password": HIDDEN,
        "kafka.sasl.jaas.config": "${secret:shop/jaas}",
    }


def test_who_logs_in_is_no_part_of_an_address(tmp_path: Path) -> None:
    conceal = drawn(tmp_path / "shop.yaml").conceal
    assert (
        conceal("at redis://me:pw@host:1/0 and http://host/a@b")
        == f"at redis://{HIDDEN}@host:1/0 and http://host/a@b"
    )
    url = "jdbc:postgresql://h/d?user=u&sslpassword={0}&ssl=true"
    assert conceal(f"url: '{url.format('pw')}'") == f"url: '{url.format(HIDDEN)}'"
    assert conceal("jdbc:oracle:thin:scott/tiger@//h/d") == f"{HIDDEN}//h/d"


@pytest.mark.servers
def test_nothing_that_a_server_sends_has_a_secret_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONLY_THIS_PROCESS", "value-of-the-environment")
    monkeypatch.setenv("GEM_BUNDLE_SERVE_TOKEN", "token-of-the-server")
    (tmp_path / "beside.yaml").write_text("a file beside it")
    found = drawn(tmp_path / "shop.yaml")
    definition = load_file(tmp_path / "shop.yaml", LoadOptions(environment=ENVIRONMENT)).definition
    assert definition is not None
    usual = sorted(SECRETS - {"s3cr3t-of-the-command-line"})
    with ExitStack() as stack:
        run = Run(definition)
        stack.enter_context(run.recorder)
        stack.callback(run.end)
        told: list[str] = []
        server = RunServer(ServeOptions(), None, run.recorder, run.stop, tell=told.append, drawn=found)
        stack.enter_context(server)
        run.stop.started("table", cast("Any", Told(f"Scan with {usual}")))
        server.started(run.report)
        run.stop.failed("table", Diagnostic("GB507", "error", f"it failed with {usual}", hint=str(usual)))
        run.report.diagnostics = list(run.stop.failures.values())
        server.tick()

        def ask(path: str) -> str:
            connection = http.client.HTTPConnection(server.address.removeprefix("http://"), timeout=60)
            connection.request("GET", path, headers={"Authorization": "Bearer token-of-the-server"})
            answer = connection.getresponse()
            # Events don't end: the first one is all that there is.
            text = b"".join(answer.readline() for _ in range(2)) if "events" in path else answer.read()
            assert answer.status in {200, 503}, path
            connection.close()
            return text.decode() + str(answer.headers)

        paths = (
            "/",
            "/metrics",
            "/health",
            "/ready",
            "/api/v1/status",
            "/api/v1/pipeline",
            "/api/v1/history",
        )
        sent = {path: ask(path) for path in (*paths, "/api/v1/plan?target=table", "/api/v1/events")}
    assert "it failed with" in sent["/api/v1/status"]
    assert "it failed with" in sent["/api/v1/events"]
    assert "Scan with" in sent["/api/v1/plan?target=table"]
    hidden = {*SECRETS, "value-of-the-environment", "token-of-the-server", "a file beside it"}
    for path, text in sent.items():
        assert [secret for secret in hidden if secret in text] == [], path


class Told:
    """A query whose plan is a text."""

    def __init__(self, plan: str) -> None:
        self._plan = plan

    def explain(self, extended: bool) -> None:
        print(self._plan)
