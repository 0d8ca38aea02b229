"""The files of the page: the same for everybody, and without anything of a run until the page asks for it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

PREFIX = "/page/"
INDEX = "index.html"
# Nothing that isn't the server's own is loaded, run or asked. uPlot and the layout set styles one by one in
# JavaScript, which this lets through; text that says `style=` isn't.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".LICENSE": "text/plain; charset=utf-8",
}


@dataclass(frozen=True)
class Asset:
    """A file of the page.

    Args:
        content: What is in it.
        kind: Its type, as a header has it.
        tag: Changes with the content.
    """

    content: bytes
    kind: str
    tag: str


@cache
def assets() -> dict[str, Asset]:
    """All files of the page by their path on the server; the page itself is `/`."""
    found: dict[str, Asset] = {}
    for name, file in _files(files("gem_bundle.run.serving") / "page", ""):
        suffix = name[name.rindex(".") :] if "." in name else ""
        if suffix in _TYPES:
            content = file.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
            found["/" if name == INDEX else PREFIX + name] = Asset(content, _TYPES[suffix], tag)
    return found


def _files(folder: Traversable, before: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{before}{entry.name}/")
        else:
            yield before + entry.name, entry
