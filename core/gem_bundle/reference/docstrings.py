"""Docstrings as Markdown: what stands in the sources in Google's style, for people who read a page."""

from __future__ import annotations

import inspect
import re
from textwrap import dedent

_SECTION = re.compile(r"^(Args|Attributes|Raises|Returns|Yields):$")
_ENTRY = re.compile(r"^(\S[^:]*): +(.*)$")


def docstring_markdown(text: str) -> str:
    """A docstring as Markdown: its paragraphs, its examples as code, its arguments as a list."""
    parts: list[str] = []
    code: list[str] | None = None  # the blocks of an example, while one goes on
    section = False
    for block in [*re.split(r"\n\s*\n", inspect.cleandoc(text)), ""]:
        if code is not None:
            if block.startswith("    "):
                code.append(block)
                continue
            example = dedent("\n\n".join(code))
            parts.append(f"```python\n{example}\n```")
            code = None
        head, _, body = block.partition("\n")
        begins = bool(_SECTION.match(head))
        section = begins or (section and block.startswith("    "))
        if section:
            parts.append(_section(head, body) if begins else dedent(block))
            continue
        paragraph = " ".join(block.split()).replace("``", "`")
        if paragraph.endswith("::"):
            code = []
            paragraph = paragraph.removesuffix(" ::") if paragraph.endswith(" ::") else paragraph[:-1]
        parts.append(paragraph.removesuffix(":") if paragraph == ":" else paragraph)
    return "\n\n".join(part for part in parts if part)


def documented_arguments(text: str) -> dict[str, str]:
    """What a docstring says of its arguments, by their names."""
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        head, _, body = block.partition("\n")
        if head == "Args:":
            matches = [_ENTRY.match(entry) for entry in _entries(body)]
            return {match[1]: match[2] for match in matches if match}
    return {}


def _section(head: str, body: str) -> str:
    """A section of arguments or the like, as a list."""
    told = []
    for entry in _entries(body):
        match = _ENTRY.match(entry)
        told.append(f"- `{match[1]}`: {match[2]}" if match else f"- {entry}")
    return f"**{head}**\n\n" + "\n".join(told)


def _entries(body: str) -> list[str]:
    """The entries of a section: each begins at the margin, and goes on further in."""
    entries: list[list[str]] = []
    for line in dedent(body).splitlines():
        if line.startswith(" ") and entries:
            entries[-1].append(line.strip())
        else:
            entries.append([line])
    return [" ".join(lines).replace("``", "`") for lines in entries]
