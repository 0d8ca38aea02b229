"""`gem-bundle graph`: Mermaid, DOT and SVG of pipelines, well-behaved ones and others."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.core.cli.conftest import Cli

TEXT = """
pipeline: orders
parameters: {topic: {type: string}}
sources:
  incoming: {gem: kafka, options: {subscribe: "${topic}"}}
  shops: {gem: file, mode: batch}
transforms:
  routed: {gem: route, input: incoming}
  end: {gem: join, inputs: {left: routed.good, right: shops}}
  tidy: {gem: filter, input: shops}
targets:
  table: {gem: delta, input: end}
  bad: {gem: file, input: routed.bad}
  report: {gem: console, input: tidy}
"""


def test_mermaid(cli: Cli, project: Callable[..., Path]) -> None:
    project(text=TEXT)
    result = cli("graph", "orders.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "flowchart LR",
        '    n_incoming(["<b>incoming</b><br/>kafka"]):::source',
        '    n_shops(["<b>shops</b><br/>file"]):::source',
        '    n_routed["<b>routed</b><br/>route"]:::transform',
        '    n_end["<b>end</b><br/>join"]:::transform',
        '    n_tidy["<b>tidy</b><br/>filter"]:::transform',
        '    n_table[("<b>table</b><br/>delta")]:::target',
        '    n_bad[("<b>bad</b><br/>file")]:::target',
        '    n_report[("<b>report</b><br/>console")]:::target',
        "    n_incoming --> n_routed",
        '    n_routed -->|"good as left"| n_end',
        '    n_shops -.->|"right"| n_end',
        "    n_shops -.-> n_tidy",
        "    n_end --> n_table",
        '    n_routed -->|"bad"| n_bad',
        "    n_tidy -.-> n_report",
        "    classDef source fill:#d6eaf8,stroke:#2e86c1,color:#17202a",
        "    classDef transform fill:#f4f6f7,stroke:#7f8c8d,color:#17202a",
        "    classDef target fill:#d5f5e3,stroke:#28b463,color:#17202a",
    ]


def test_dot(cli: Cli, project: Callable[..., Path]) -> None:
    project(text=TEXT)
    lines = cli("graph", "orders.yaml", "--format", "dot").stdout.splitlines()
    assert (lines[0], lines[-1]) == ('digraph "orders" {', "}")
    assert '    "incoming" [label="incoming\\nkafka" shape=oval fillcolor="#d6eaf8" color="#2e86c1"]' in lines
    assert [line for line in lines if "->" in line] == [
        '    "incoming" -> "routed"',
        '    "routed" -> "end" [label="good as left"]',
        '    "shops" -> "end" [label="right" style=dashed]',
        '    "shops" -> "tidy" [style=dashed]',
        '    "end" -> "table"',
        '    "routed" -> "bad" [label="bad"]',
        '    "tidy" -> "report" [style=dashed]',
    ]


def test_a_batch_pipeline_has_no_streams(cli: Cli, project: Callable[..., Path]) -> None:
    project(text=f"mode: batch{TEXT}")
    assert " --> " not in cli("graph", "orders.yaml").stdout


def test_errors_are_no_reason_to_draw_nothing(cli: Cli, project: Callable[..., Path]) -> None:
    text = TEXT.replace("input: end", "input: ended").replace("{gem: filter, input: shops}", "{}")
    project(text=text)
    result = cli("graph", "orders.yaml")
    assert result.exit_code == 1
    assert "n_routed" in result.stdout
    assert "n_tidy" not in result.stdout
    assert re.fullmatch(
        r"orders\.yaml has \d errors and is drawn as far as it can be read; "
        r"`gem-bundle check orders\.yaml` tells more\.\n",
        result.stderr,
    )
    quiet = cli("graph", "--quiet", "orders.yaml")
    assert (quiet.exit_code, quiet.stderr) == (1, "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "error[GB002]"),
        ("pipeline: empty\n", "error: orders.yaml: there is no node to draw"),
    ],
)
def test_nothing_to_draw(text: str, said: str, cli: Cli, project: Callable[..., Path]) -> None:
    project(text=text)
    result = cli("graph", "orders.yaml")
    assert (result.exit_code, result.stdout) == (1, "")
    assert said in result.stderr


def test_names_that_mean_something_to_the_formats(cli: Cli, project: Callable[..., Path]) -> None:
    name = 'a "b" <c> #d; \\e'
    project(
        text="pipeline: odd\n"
        f"sources: {{'{name}': {{gem: rate}}, x-1: {{gem: rate}}}}\n"
        f"targets: {{class: {{gem: 'no\"op]', input: '{name}'}}, o: {{gem: noop, input: x-1}}}}\n"
    )
    lines = cli("graph", "orders.yaml").stdout.splitlines()
    label = "a #34;b#34; #60;c#62; #35;d#59; #92;e"
    assert sum(f'(["<b>{label}</b><br/>rate"])' in line for line in lines) == 1
    assert '    n_class[("<b>class</b><br/>no#34;op]")]:::target' in lines
    assert all(re.fullmatch(r"    \w+ --> \w+", line) for line in lines if "-->" in line)
    lines = cli("graph", "orders.yaml", "--format", "dot").stdout.splitlines()
    assert '    "a \\"b\\" <c> #d; \\\\e" -> "class"' in lines


@pytest.mark.programs
def test_svg_is_drawn_by_graphviz(
    cli: Cli, project: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project(text=TEXT).parent
    dot = tmp_path / "dot"
    dot.write_text('#!/bin/sh\nprintf "%s\\n" "$*"\ncat\n')
    dot.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    result = cli("graph", folder / "orders.yaml", "--format", "svg")
    assert result.exit_code == 0
    assert result.stdout == "-Tsvg\n" + cli("graph", folder / "orders.yaml", "--format", "dot").stdout
    dot.write_text("#!/bin/sh\ncat >/dev/null\necho no fonts >&2\nexit 3\n")
    result = cli("graph", folder / "orders.yaml", "--format", "svg")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: Graphviz can't draw it: no fonts\n"


def test_svg_without_graphviz(
    cli: Cli, project: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(text=TEXT)
    monkeypatch.setenv("PATH", str(tmp_path))
    result = cli("graph", "orders.yaml", "--format", "svg")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "its program `dot` is not on the PATH" in result.stderr
    assert "--format mermaid" in result.stderr
