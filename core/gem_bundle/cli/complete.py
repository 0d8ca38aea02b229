"""What the shell offers when the user presses tab. See `gem-bundle completion`.

A completer must be quick and must never fail: what can't be read offers nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

_YAML = (".yaml", ".yml")


def complete_file(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """YAML files; where none fits, whatever the shell finds, so that folders can be walked into."""
    from click.shell_completion import CompletionItem

    folder = os.path.dirname(incomplete)  # noqa: PTH120 (a Path would drop a leading `./`)
    try:
        names = sorted(os.listdir(folder or "."))  # noqa: PTH208
    except OSError:
        return []
    paths = [os.path.join(folder, name) for name in names if name.endswith(_YAML)]  # noqa: PTH118
    found = [CompletionItem(path) for path in paths if path.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


def complete_gem(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of installed gems, of one kind where the command line says which."""
    from gem_bundle.plugins import KINDS, load_registry

    registry = load_registry()
    words = ctx.params.get("words") or ()
    given = ctx.params.get("kind") or next((kind for kind in KINDS if kind in words), None)
    kinds: dict[str, list[str]] = {}
    for kind in KINDS:
        for name in registry.names(kind):
            if given in {None, kind}:
                kinds.setdefault(name, []).append(kind)
    return _items({name: " and ".join(of) for name, of in sorted(kinds.items())}, incomplete)


def complete_code(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Diagnostic codes, with their titles."""
    from gem_bundle.codes import CODES

    return _items({code.code: code.title for code in CODES.values()}, incomplete.upper())


def complete_node(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of the pipeline's nodes."""
    return _items(_nodes(ctx, "sources", "transforms", "targets"), incomplete)


def complete_target(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of the pipeline's targets."""
    return _items(_nodes(ctx, "targets"), incomplete)


def complete_profile(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of the pipeline's profiles."""
    return _items(dict.fromkeys(_section(ctx, "profiles"), ""), incomplete)


def complete_parameter(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of the pipeline's parameters, each with its ``=``."""
    names = _section(ctx, "parameters")
    return _items({f"{name}=": "" for name in names}, incomplete)


def _items(offers: dict[str, str], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [
        CompletionItem(value, help=text or None)
        for value, text in offers.items()
        if value.startswith(incomplete)
    ]


def _nodes(ctx: click.Context, *sections: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for section in sections:
        for name, node in _section(ctx, section).items():
            gem = node.get("gem", "") if isinstance(node, dict) else ""
            found[name] = f"{section.removesuffix('s')} {gem}".rstrip()
    return found


def _section(ctx: click.Context, section: str) -> dict[str, Any]:
    """A section of the file that the command line names; only the YAML is read, nothing is checked."""
    from gem_bundle.pipeline.document import parse

    # While an option still lacks its value, click leaves the arguments unnamed.
    files = ctx.params.get("file") or ctx.params.get("files") or ctx.args
    found: dict[str, Any] = {}
    for file in [files] if isinstance(files, str) else files:
        try:
            with open(file, "rb") as opened:  # noqa: PTH123 (a completer imports as little as it can)
                values = parse(opened.read(), file).values
        except OSError:
            continue
        entries = values.get(section) if isinstance(values, dict) else None
        found.update(entries if isinstance(entries, dict) else {})
    return found
