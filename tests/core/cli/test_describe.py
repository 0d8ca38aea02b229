"""`gem-bundle describe`: a gem by its own declarations."""

from __future__ import annotations

import json
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from gem_bundle.pipeline.document import parse
from gem_bundle.plugins import load_registry
from tests.schemas import validator

if TYPE_CHECKING:
    from tests.core.cli.conftest import Cli, Installer

SOURCE = """\
orders (source)  acme-gems 2.1
Read orders | from Acme.

Acme keeps `orders` for seven days.

Options
  brokers: list of `host:port`; required
      Whom to ask. Spark calls it `acme.bootstrap.servers`.
  max_rows: whole number, greater than 0 and at most 1000
      Rows at most. For example `10`. Spark calls it `maxRows`.
  start: `earliest`, `latest` or mapping of texts to whole numbers; default latest
      Where to begin.
  password: secret text
      The password. Its value is never printed.

Advanced options
  buffer: number, at least 0; default 0.5
      For the brave. Since Spark 4.1.

Semantics
  Mode        stream or batch
  Triggers    none (as fast as possible), available_now, processing_time, once
  Replayable  yes: as long as Acme keeps them

Jars
  com.acme:orders_{scala}:1.0

Example
  sources:
    events:
      gem: orders
      options:
        brokers: ['acme:9092']
        max_rows: 10
"""

TARGET = """\
orders (target)  acme-gems 2.1
Send orders to Acme.

Options
  none

Semantics
  Mode          stream or batch
  Triggers      none (as fast as possible), available_now, processing_time, once
  Output modes  append
  Delivery      exactly once: with keys
  Restart       continues from its checkpoint

Example
  targets:
    result: {gem: orders, input: events}
"""

TRANSFORM = """\
route (transform)  acme-gems 2.1
Send rows to one of two outputs.

Options
  window: mapping
      A window.
  window.column: text; required
      The time.
  window.duration: duration; default 1 minute
      How long.
  keys: list of SQL expressions
      By what.

Semantics
  Inputs  1 or more

Example
  transforms:
    changed:
      gem: route
      input: events
      options:
        keys:
        - |-
          a
          b
"""


@pytest.mark.usefixtures("acme")
def test_a_source(cli: Cli) -> None:
    result = cli("describe", "orders", "--kind", "source")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == SOURCE
    assert cli("describe", "source", "orders").stdout == SOURCE


@pytest.mark.usefixtures("acme")
def test_a_transform(cli: Cli) -> None:
    assert cli("describe", "route").stdout == TRANSFORM


@pytest.mark.usefixtures("acme")
def test_a_source_and_a_target_of_one_name(cli: Cli) -> None:
    assert cli("describe", "orders").stdout == f"{SOURCE}\n{TARGET}"


@pytest.mark.usefixtures("acme")
def test_as_json(cli: Cli) -> None:
    source, target = json.loads(cli("describe", "orders", "--format", "json").stdout)
    assert (source["kind"], target["kind"]) == ("source", "target")
    assert source["origin"] == {"plugin": "acme", "distribution": "acme-gems", "version": "2.1"}
    assert source["options"][0] == {
        "name": "brokers",
        "type": "list of `host:port`",
        "required": True,
        "default": None,
        "description": "Whom to ask.",
        "spark": "acme.bootstrap.servers",
        "secret": False,
        "advanced": False,
        "since": None,
        "examples": [],
    }
    assert [option["name"] for option in source["options"] if option["secret"]] == ["password"]
    assert source["semantics"] == {
        "batch": True,
        "streaming": True,
        "replayable": True,
        "triggers": ["default", "available_now", "processing_time", "once"],
        "condition": "as long as Acme keeps them",
        "backlog": True,
        "only_new": False,
        "newest_first": None,
        "not_continuous": [],
        "inline": False,
        "lag": [],
        "can_reject": False,
    }
    assert target["semantics"]["output_modes"] == ["append"]
    assert source["example"] == {"brokers": ["acme:9092"], "max_rows": 10}


@pytest.mark.usefixtures("acme")
def test_as_markdown(cli: Cli) -> None:
    text = cli("describe", "source", "orders", "--format", "markdown").stdout
    assert text.startswith("## `orders` (source)\n\nRead orders | from Acme.\n")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows[2] == (
        "| `brokers` | list of `host:port` | required | "
        "Whom to ask. Spark calls it `acme.bootstrap.servers`. |"
    )
    assert all(row.count("|") == 5 for row in rows)
    assert "```yaml\nsources:\n" in text


@pytest.mark.usefixtures("acme")
def test_a_schema_takes_what_the_file_takes(cli: Cli) -> None:
    schema = json.loads(cli("describe", "source", "orders", "--format", "schema").stdout)
    assert schema["additionalProperties"] is False
    taken = validator(schema)
    for key in ("brokers", "acme.bootstrap.servers", "ACME.Bootstrap.Servers"):
        assert taken.is_valid({key: ["acme:9092"], "maxRows": "10"})
    for wrong in ({}, {"acme.bootstrap_servers": ["a:1"]}, {"brokers": ["a:1"], "max_rows": 1001}):
        assert not taken.is_valid(wrong)
    rows = schema["properties"]["max_rows"]
    assert rows["anyOf"][:2] == [
        {"type": "integer", "exclusiveMinimum": 0, "maximum": 1000},
        {"type": "null"},
    ]
    assert rows["anyOf"][2]["patternErrorMessage"] == "Write a whole number or a reference such as `${name}`."
    assert rows["description"] == "Rows at most."
    assert "gem_bundle" not in json.dumps(schema)


@pytest.mark.usefixtures("acme")
def test_a_schema_is_of_one_gem(cli: Cli) -> None:
    result = cli("describe", "orders", "--format", "schema")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "`orders` is a source and a target, and a schema is of one: add `--kind source`." in result.stderr


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rout"], "There is no gem `rout`. Did you mean `route`?"),
        (["source", "route"], "There is no source gem `route`. `route` is a transform."),
        (["a", "b"], "Name one gem, as in `gem-bundle describe kafka`"),
        (["source", "orders", "--kind", "target"], "Name one gem"),
        ([], "Missing argument"),
    ],
)
def test_a_wrong_use(arguments: list[str], said: str, cli: Cli) -> None:
    result = cli("describe", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_a_gem_that_cannot_be_loaded(cli: Cli, install: Installer) -> None:
    install(
        "half",
        dedent("""
        from gem_bundle import hookimpl

        @hookimpl
        def gem_bundle_register_gems(register):
            register("source", "lost", "half_gems:Lost")
        """),
    )
    result = cli("describe", "lost")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: The source `lost` of `half-gems 1.0` can't be loaded")
    assert "report it to its authors" in result.stderr


LOADABLE = [
    pytest.param(entry.kind, entry.name, id=f"{entry.kind}-{entry.name}") for entry in load_registry()
]


@pytest.mark.parametrize(("kind", "name"), LOADABLE)
def test_every_installed_gem_shows_an_example_that_is_its_own(kind: str, name: str, cli: Cli) -> None:
    (gem,) = json.loads(cli("describe", kind, name, "--format", "json").stdout)
    text = cli("describe", kind, name).stdout
    document = parse(dedent(text.partition("\nExample\n")[2]), "example.yaml")
    assert not document.diagnostics
    (node,) = document.values[f"{kind}s"].values()
    assert node["gem"] == name
    assert node.get("options", {}) == gem["example"]
    required = {
        option["name"] for option in gem["options"] if option["required"] and "." not in option["name"]
    }
    assert required <= gem["example"].keys()
    assert all(option["description"] for option in gem["options"])
