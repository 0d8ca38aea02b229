"""The pages of the diagnostics: what each code means, what breaks the rule and what keeps it."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

from gem_bundle.codes import CODES, GROUPS
from gem_bundle.describe.markdown import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.codes import Code

_LANGUAGES = {"py": "python", "yaml": "yaml", "yml": "yaml", "toml": "toml", "json": "json", "txt": "text"}
_NAMED = re.compile(r"# [\w./-]+\.(\w+)$")


def diagnostics_pages(folder: str) -> Iterator[tuple[str, str]]:
    """A page for each group of codes, and one that lists them all.

    Args:
        folder: The folder that they are in.
    """
    listed = [
        "# Diagnostics",
        "Codes are stable: one is never used again for something else. `gem-bundle explain GB301` shows in a "
        "terminal what stands here. An error keeps a pipeline from running; warnings and notes can be "
        "silenced with `# gem-bundle: ignore GB103` above the line or behind it, or in "
        "[the settings](../settings.md).",
        "Behind *From* stands whose documentation a rule is taken from. What is said of Databricks and "
        "Kubernetes goes by theirs: nobody has tried it there.",
    ]
    for prefix, title in GROUPS.items():
        codes = [code for code in CODES.values() if code.code.startswith(prefix)]
        if not codes:
            continue
        page = f"{prefix.lower()}.md"
        rows = [(f"[{code.code}]({page}#{code.code.lower()})", code.severity, code.title) for code in codes]
        listed += [f"## [{title}]({page})", table(("code", "severity", "rule"), rows)]
        yield f"{folder}/{page}", _group(prefix, title, codes)
    yield f"{folder}/index.md", "\n\n".join(listed)


def _group(prefix: str, title: str, codes: list[Code]) -> str:
    parts = [f"# {title} ({prefix}xx)"]
    rows = [(f"[{code.code}](#{code.code.lower()})", code.severity, code.title) for code in codes]
    parts.append(table(("code", "severity", "rule"), rows))
    for code in codes:
        parts += [f"## {code.code}", f"**{code.severity}: {code.title}**", code.why]
        for heading, example in (("What breaks it", code.breaks), ("What keeps it", code.keeps)):
            if example:
                parts += [f"{heading}:", *_blocks(example)]
        if code.source:
            parts.append(f"From: {code.source}.")
    return "\n\n".join(parts)


def _blocks(example: str) -> Iterator[str]:
    """An example as blocks of code: command lines, a pipeline file, and other files by their names."""
    language = "yaml"

    def kind(line: str) -> str:
        nonlocal language
        if line.startswith("$ "):
            return "console"
        named = _NAMED.match(line)
        if named:
            language = _LANGUAGES.get(named[1], "text")
        return language

    # A line that only continues a command belongs to it.
    joined = example.replace("\\\n", "\\\x00")
    for found, lines in groupby(joined.splitlines(), kind):
        text = "\n".join(lines).replace("\x00", "\n").strip("\n")
        if text:
            yield f"```{found if found != 'yaml' or _is_yaml(text) else 'text'}\n{text}\n```"


def _is_yaml(text: str) -> bool:
    """Whether it can be highlighted as YAML; some examples break just that."""
    import yaml

    try:
        yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError:
        return False
    return True
