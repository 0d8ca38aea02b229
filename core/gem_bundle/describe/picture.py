"""A pipeline as a small picture in HTML, for notebooks: its graph, its verdict and what was found.

A notebook runs no script of an output that it doesn't trust, so where everything goes is decided here: in
layers, each node behind all that it reads, and in each layer near to what it reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import pairwise
from statistics import mean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.pipeline.model import Definition, Node

_WIDTH, _HEIGHT, _GAP, _BETWEEN, _BEND = 150, 40, 14, 56, 10
_SWEEPS = 6
_FILL = {"source": "#d6eaf8", "transform": "#f4f6f7", "target": "#d5f5e3"}
_LINE = {"source": "#2e86c1", "transform": "#7f8c8d", "target": "#28b463"}
_TEXT, _BAD = "#17202a", "#b3261e"
_LONGEST = 19
_MOST_FINDINGS = 20


@dataclass
class _Spot:
    """A place in a layer: a node's, or where a long edge passes.

    Args:
        layer: The number of its layer.
        height: How high it is.
        node: The node; None where an edge passes.
    """

    layer: int
    height: int
    node: Node | None = None
    order: float = 0.0
    y: float = 0.0


def picture(definition: Definition | None, diagnostics: Sequence[Diagnostic], name: str = "") -> str:
    """A pipeline as HTML, without scripts and without anything from elsewhere.

    Args:
        definition: The pipeline as far as it could be read.
        diagnostics: What was found.
        name: What it is called where it couldn't be read.
    """
    title = f"{definition.name} {definition.version}" if definition is not None else name
    parts = [f"<div><p><strong>{escape(title)}</strong>: {escape(_verdict(definition, diagnostics))}</p>"]
    if definition is not None and definition.nodes:
        parts.append(_graph(definition, {found.node for found in diagnostics if found.is_error}))
    if diagnostics:
        told = [escape(str(found)) for found in diagnostics[:_MOST_FINDINGS]]
        parts += ["<ul>", *(f'<li style="white-space: pre-wrap">{text}</li>' for text in told), "</ul>"]
    if len(diagnostics) > _MOST_FINDINGS:
        parts.append(f"<p>and {len(diagnostics) - _MOST_FINDINGS} more</p>")
    return "".join([*parts, "</div>"])


def _verdict(definition: Definition | None, diagnostics: Iterable[Diagnostic]) -> str:
    counts = dict.fromkeys(("error", "warning", "note"), 0)
    for found in diagnostics:
        counts[found.severity] += 1
    told = [f"{count} {what}{'s' * (count != 1)}" for what, count in counts.items() if count]
    words = told if counts["error"] else ["ok", *told]
    nodes = len(definition.nodes) if definition is not None else 0
    return f"{', '.join(words)} ({nodes} node{'s' * (nodes != 1)})"


def _graph(definition: Definition, failing: set[str | None]) -> str:
    spots, paths = _laid_out(definition)
    width = (max(spot.layer for spot in spots) + 1) * (_WIDTH + _BETWEEN) - _BETWEEN + 2 * _GAP
    height = max(spot.y + spot.height / 2 for spot in spots) + _GAP
    label = f"Graph of {definition.name}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" '
        f'viewBox="0 0 {width} {height:.0f}" width="{width}" style="max-width: 100%; height: auto" '
        'font-family="sans-serif">'
    ]
    parts += [f'<path d="{path}" fill="none" stroke="#7f8c8d" stroke-width="1.5"/>' for path in paths]
    for spot in spots:
        if spot.node is not None:
            parts += _box(spot, spot.node, spot.node.id in failing)
    return "".join([*parts, "</svg>"])


def _box(spot: _Spot, node: Node, is_failing: bool) -> Iterator[str]:
    left, top = _left(spot), spot.y - spot.height / 2
    line, thick = (_BAD, 3) if is_failing else (_LINE[node.kind], 1.5)
    round_by = _HEIGHT / 2 if node.kind == "source" else 4
    yield f"<g><title>{escape(f'{node.kind} {node.id}: {node.gem}')}</title>"
    yield f'<rect x="{left}" y="{top:.1f}" width="{_WIDTH}" height="{_HEIGHT}" rx="{round_by}" '
    yield f'fill="{_FILL[node.kind]}" stroke="{line}" stroke-width="{thick}"/>'
    for text, down, size, weight in ((node.id, 17, 13, "bold"), (node.gem, 32, 11, "normal")):
        short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        yield f'<text x="{left + _WIDTH / 2}" y="{top + down:.1f}" font-size="{size}" font-weight="{weight}" '
        yield f'text-anchor="middle" fill="{_TEXT}">{escape(short)}</text>'
    yield "</g>"


def _laid_out(definition: Definition) -> tuple[list[_Spot], list[str]]:
    """Where everything goes: the spots of all layers, and the paths of the edges between them."""
    edges = list(
        dict.fromkeys(
            (edge.node, node.id)
            for node in definition.nodes.values()
            for edge in node.inputs
            if edge.node in definition.nodes and edge.node != node.id
        )
    )
    layers = _layers(list(definition.nodes), edges)
    of_node = {name: _Spot(layers[name], _HEIGHT, node) for name, node in definition.nodes.items()}
    spots = list(of_node.values())
    chains: list[list[_Spot]] = []
    for start, end in edges:
        first, last = of_node[start], of_node[end]
        between = [_Spot(layer, _BEND) for layer in range(first.layer + 1, last.layer)]
        spots += between
        chains.append([first, *between, last])
    _arrange(spots, chains)
    return spots, [_path(chain) for chain in chains]


def _layers(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """For each node how many edges the longest way to it has; what runs in a circle ends somewhere."""
    found = dict.fromkeys(names, 0)
    for _ in names:
        moved = False
        for start, end in edges:
            if found[end] <= found[start] < len(names) - 1:
                found[end] = found[start] + 1
                moved = True
        if not moved:
            break
    used = {layer: number for number, layer in enumerate(sorted(set(found.values())))}
    return {name: used[layer] for name, layer in found.items()}


def _arrange(spots: Sequence[_Spot], chains: Iterable[Sequence[_Spot]]) -> None:
    """Put the spots of each layer below each other, near to those that they are connected with."""
    columns: dict[int, list[_Spot]] = {}
    for spot in spots:
        columns.setdefault(spot.layer, []).append(spot)
    beside: dict[int, list[_Spot]] = {id(spot): [] for spot in spots}
    for chain in chains:
        for one, other in pairwise(chain):
            beside[id(one)].append(other)
            beside[id(other)].append(one)
    for column in columns.values():
        _stack(column)
    for sweep in range(_SWEEPS):
        step = -1 if sweep % 2 else 1
        for layer in sorted(columns)[::step]:
            column = columns[layer]
            for spot in column:
                near = [other.y for other in beside[id(spot)] if (other.layer - layer) * step < 0]
                spot.order = mean(near) if near else spot.y
            column.sort(key=lambda spot: spot.order)
            _stack(column)
    highest = max(sum(spot.height + _GAP for spot in column) for column in columns.values())
    for column in columns.values():
        down = (highest - sum(spot.height + _GAP for spot in column)) / 2
        for spot in column:
            spot.y += down


def _stack(column: Iterable[_Spot]) -> None:
    top = float(_GAP)
    for spot in column:
        spot.y = top + spot.height / 2
        top += spot.height + _GAP


def _left(spot: _Spot) -> int:
    return _GAP + spot.layer * (_WIDTH + _BETWEEN)


def _path(chain: Sequence[_Spot]) -> str:
    """A line through the spots; in circles it runs back."""
    first, *rest = chain
    right, before = _left(first) + _WIDTH, first.y
    parts = [f"M{right},{before:.1f}"]
    for spot in rest:
        left = _left(spot)
        half = max(_BETWEEN, left - right) / 2
        parts.append(f"C{right + half},{before:.1f} {left - half},{spot.y:.1f} {left},{spot.y:.1f}")
        if spot.node is None:
            parts.append(f"H{left + _WIDTH}")
        right, before = left + _WIDTH, spot.y
    return " ".join(parts)
