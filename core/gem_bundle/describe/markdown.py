"""A gem's description as Markdown, and its example as YAML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gem_bundle.describe.semantics import semantics_in_words
from gem_bundle.diagnostics import listed_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gem_bundle.describe.facts import GemDescription, OptionDescription


def example_yaml(gem: GemDescription) -> str:
    """The gem's example as it stands in a pipeline file."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes a text of several lines as a block, and quotes no `on`: in YAML 1.2 it is a text."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    Dumper.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":bool")]
        for first, resolvers in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }
    words = re.compile("true|True|TRUE|false|False|FALSE")
    Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", words, list("tTfF"))
    node: dict[str, Any] = {"gem": gem.name}
    if gem.kind == "transform":
        least = gem.semantics["least_inputs"]
        node |= {"input": "events"} if least < 2 else {"inputs": ["left", "right"]}
    elif gem.kind == "target":
        node |= {"input": "events"}
    if gem.example:
        node["options"] = gem.example
    name = {"source": "events", "transform": "changed", "target": "result"}[gem.kind]
    return str(
        yaml.dump(
            {f"{gem.kind}s": {name: node}},
            Dumper=Dumper,
            sort_keys=False,
            default_flow_style=None,
            allow_unicode=True,
            width=88,
        )
    ).rstrip("\n")


def value_in_words(value: Any) -> str:
    """A default or an example as one writes it in a pipeline file."""
    import json

    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def markdown(gem: GemDescription, level: int = 2) -> str:
    """The description as Markdown.

    Args:
        gem: What to describe.
        level: The level of its heading.
    """
    mark = "#" * level
    parts = [f"{mark} `{gem.name}` ({gem.kind})", gem.summary, *gem.details]
    parts += [f"From `{gem.origin}`.", f"{mark}# Options"]
    parts.append(options_table(gem.options) if gem.options else "It has no options.")
    facts = [f"- {what}: {how}" for what, how in semantics_in_words(gem)]
    parts += [f"{mark}# Semantics", "\n".join(facts)]
    if gem.jars:
        parts += [f"{mark}# Jars", "\n".join(f"- `{jar}`" for jar in gem.jars)]
    parts += [f"{mark}# Example", f"```yaml\n{example_yaml(gem)}\n```"]
    return "\n\n".join(parts)


def options_table(options: Iterable[OptionDescription], what: str = "option") -> str:
    """Options as a table of Markdown.

    Args:
        options: What to list.
        what: What one of them is called.
    """
    rows = []
    for option in options:
        default = "required" if option.required else ""
        # What a mapping holds by default stands with the options inside it.
        if not isinstance(option.default, dict) and option.default not in (None, "", []):
            default = f"`{value_in_words(option.default)}`"
        text = " ".join([option.description, *option_notes(option)])
        rows.append((f"`{option.name}`", option.type, default, text))
    return table((what, "type", "default", "description"), rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown; lines within a cell become one."""

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(' '.join(cell.split()).replace('|', BAR) for cell in cells)} |"

    return "\n".join([line(head), "|---" * len(head) + "|", *map(line, rows)])


# It stands within backquotes too, where an entity would be shown as it is written.
BAR = r"\|"


def option_notes(option: OptionDescription) -> list[str]:
    """What else is worth knowing about an option, as sentences."""
    notes = []
    if option.examples:
        shown = listed_names(value_in_words(value) for value in option.examples)
        notes.append(f"For example {shown}.")
    if option.spark:
        notes.append(f"Spark calls it `{option.spark}`.")
    if option.since:
        notes.append(f"Since Spark {option.since}.")
    if option.secret:
        notes.append("Its value is never printed.")
    return notes
