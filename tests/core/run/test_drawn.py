"""What others may see of a pipeline: all of its graph, and none of its secrets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gem_bundle.check.checker import check_definition
from gem_bundle.pipeline.loader import LoadOptions, load_file
from gem_bundle.pipeline.secrets import HIDDEN, SecretStore
from gem_bundle.run.serving.drawn import Drawn, draw

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
