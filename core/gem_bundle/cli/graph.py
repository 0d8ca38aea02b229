"""`gem-bundle graph`: a pipeline's graph as Mermaid, DOT or SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from gem_bundle.cli.output import counted, print_diagnostics, print_error, print_note
from gem_bundle.cli.params import file_argument, format_option, parameter_options, quiet_option

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.pipeline.model import Definition, Input


class _Edge(NamedTuple):
    """The rows that flow from one node into another."""

    start: str
    end: str
    label: str
    streaming: bool


@click.command(
    "graph",
    short_help="Draw a pipeline.",
    epilog="\b\nExamples:\n"
    "  gem-bundle graph orders.yaml\n"
    "  gem-bundle graph orders.yaml --format svg > orders.svg",
)
@file_argument
@parameter_options
@format_option("mermaid", "dot", "svg")
@quiet_option
def command(
    file: str, parameters: dict[str, str], profile: str | None, output_format: str, *, quiet: bool
) -> None:
    """Draw a pipeline as Mermaid, DOT or SVG: its nodes with their gems, and what flows between them.

    Solid arrows are streams, dashed ones static relations. Mermaid is what GitHub, GitLab and many
    editors show as a picture; SVG needs Graphviz. A pipeline with errors is drawn as far as it can be
    read, and the exit status is 1.
    """
    from gem_bundle.check.stages.graph import check_graph
    from gem_bundle.diagnostics import in_order
    from gem_bundle.pipeline.loader import LoadOptions, load_file

    options = LoadOptions(parameters, profile, skip_env=True, require_parameters=False)
    loaded = load_file(file, options)
    found = list(loaded.diagnostics)
    definition = loaded.definition
    if definition is None or not definition.nodes:
        print_diagnostics(in_order(found))
        if definition is not None:
            print_error(f"{file}: there is no node to draw")
        raise SystemExit(1)
    found += check_graph(definition, loaded.broken)[1]
    if output_format == "mermaid":
        click.echo("\n".join(_mermaid(definition)))
    else:
        dot = "\n".join(_dot(definition))
        click.echo(dot if output_format == "dot" else _svg(dot))
    errors = sum(diagnostic.is_error for diagnostic in found)
    if errors:
        if not quiet:
            print_note(
                f"{file} has {counted(errors, 'error')} and is drawn as far as it can be read; "
                f"`gem-bundle check {file}` tells more."
            )
        raise SystemExit(1)


def _edges(definition: Definition) -> list[_Edge]:
    streaming = _streaming(definition)
    return [
        _Edge(edge.node, node.id, _label(edge), edge.node in streaming)
        for node in definition.nodes.values()
        for edge in node.inputs
        if edge.node in definition.nodes
    ]


def _label(edge: Input) -> str:
    """The named output, and the name that the input has for the node that takes it."""
    own = "" if edge.name in {edge.node, edge.output} else edge.name
    if edge.output and own:
        return f"{edge.output} as {own}"
    return edge.output or own


def _streaming(definition: Definition) -> set[str]:
    """The nodes whose rows are a stream: streaming sources, and whatever one of them reaches."""
    followers: dict[str, list[str]] = {}
    for node in definition.nodes.values():
        for edge in node.inputs:
            followers.setdefault(edge.node, []).append(node.id)
    waiting = [node.id for node in definition.of_kind("source") if node.mode == "stream"]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += followers.get(name, ())
    return found


# The same colours in both formats: legible on white and on black.
_FILL = {"source": "#d6eaf8", "transform": "#f4f6f7", "target": "#d5f5e3"}
_LINE = {"source": "#2e86c1", "transform": "#7f8c8d", "target": "#28b463"}
_TEXT = "#17202a"

_MERMAID_SHAPES = {"source": ('(["', '"])'), "transform": ('["', '"]'), "target": ('[("', '")]')}


def _mermaid(definition: Definition) -> Iterator[str]:
    yield "flowchart LR"
    for node in definition.nodes.values():
        opening, closing = _MERMAID_SHAPES[node.kind]
        label = f"<b>{_mermaid_text(node.id)}</b><br/>{_mermaid_text(node.gem)}"
        yield f"    {_mermaid_id(node.id)}{opening}{label}{closing}:::{node.kind}"
    for edge in _edges(definition):
        arrow = "-->" if edge.streaming else "-.->"
        label = f'|"{_mermaid_text(edge.label)}"|' if edge.label else ""
        yield f"    {_mermaid_id(edge.start)} {arrow}{label} {_mermaid_id(edge.end)}"
    for kind in _used_kinds(definition):
        yield f"    classDef {kind} fill:{_FILL[kind]},stroke:{_LINE[kind]},color:{_TEXT}"


def _mermaid_id(name: str) -> str:
    """An id that Mermaid can't take for one of its words (`end`, `graph`), nor for an arrow's end."""
    return "n_" + "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"__{ord(c):x}__" for c in name)


def _mermaid_text(text: str) -> str:
    """A text for a label; Mermaid writes characters that it would read as its own with ``#…;``."""
    return "".join(f"#{ord(c)};" if c in '"#<>&;\\`' or c < " " else c for c in text)


def _used_kinds(definition: Definition) -> Iterable[str]:
    return dict.fromkeys(node.kind for node in definition.nodes.values())


_DOT_SHAPES = {"source": "oval", "transform": "box", "target": "cylinder"}


def _dot(definition: Definition) -> Iterator[str]:
    yield f"digraph {_dot_text(definition.name)} {{"
    yield "    rankdir=LR"
    yield f'    node [style=filled fontname="Helvetica" fontcolor="{_TEXT}"]'
    yield '    edge [fontname="Helvetica" fontsize=10]'
    for node in definition.nodes.values():
        label = _dot_text(f"{node.id}\n{node.gem}")
        yield (
            f"    {_dot_text(node.id)} [label={label} shape={_DOT_SHAPES[node.kind]} "
            f'fillcolor="{_FILL[node.kind]}" color="{_LINE[node.kind]}"]'
        )
    for edge in _edges(definition):
        attributes = [f"label={_dot_text(edge.label)}"] if edge.label else []
        attributes += [] if edge.streaming else ["style=dashed"]
        shown = f" [{' '.join(attributes)}]" if attributes else ""
        yield f"    {_dot_text(edge.start)} -> {_dot_text(edge.end)}{shown}"
    yield "}"


def _dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _svg(dot: str) -> str:
    import shutil
    import subprocess

    program = shutil.which("dot")
    if program is None:
        print_error(
            "SVG is drawn by Graphviz, and its program `dot` is not on the PATH",
            "Install Graphviz, or take `--format mermaid`, which needs nothing.",
        )
        raise SystemExit(1)
    done = subprocess.run([program, "-Tsvg"], input=dot, capture_output=True, text=True, check=False)
    if done.returncode:
        print_error(f"Graphviz can't draw it: {done.stderr.strip()}")
        raise SystemExit(1)
    return done.stdout.rstrip("\n")
