"""How the site is made of these pages: by Sphinx, with MyST for Markdown and Furo for its looks.

Sphinx (BSD), MyST-Parser and Furo (both MIT) are maintained. MkDocs is not: its themes need 1.6, of
2024, which gets no fixes any more, and those for Material for MkDocs ended in November 2026.
"""

from __future__ import annotations

import re
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "gem-bundle"
author = "The gem-bundle developers"
copyright = author  # noqa: A001 (Sphinx reads the setting by this name)
version = release = version_of("gem-bundle")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"gem-bundle {version}"
html_copy_source = False
highlight_language = "none"

# Headings down to this level can be linked to, by the anchors that GitHub gives them too.
myst_heading_anchors = 3

# One backquote in a docstring stands around a name, or around code.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False

HERE = Path(__file__).resolve().parent
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def links_of_included(app: Sphinx, path: Path, _parent: str, content: list[str]) -> None:
    """Turn links of an included file, which are relative to that file, into links of the site.

    Files outside `docs` have no page but the one on the examples; of links to others the words stay.
    """
    folder = (Path(app.srcdir) / path).resolve().parent

    def link(match: re.Match[str]) -> str:
        mark, words, target = match.groups()
        place, hash_, anchor = target.partition("#")
        if "://" in target or not place:
            return match[0]
        file = (folder / place).resolve()
        if file.is_relative_to(HERE):
            return f"{mark}[{words}](/{file.relative_to(HERE).as_posix()}{hash_}{anchor})"
        if file.is_relative_to(HERE.parent / "examples"):
            return f"{mark}[{words}](/examples.md)"
        return f"[{words}](/index.md)" if file == HERE.parent / "README.md" else words

    content[0] = LINK.sub(link, content[0])
    if path.name == "README.md" and folder == HERE.parent:
        # Its sections are pages here.
        content[0] = content[0].replace("\n### ", "\n## ")


def contents_of_reference(_app: Sphinx, page: str, content: list[str]) -> None:
    """Give the lists of the reference, which are plain Markdown, their place in the site's contents."""
    if not (page.startswith("reference/") and page.endswith("/index")):
        return
    folder = (HERE / page).parent
    names = {file.with_suffix("").relative_to(folder).as_posix() for file in folder.glob("*.md")} - {"index"}
    names |= {file.with_suffix("").relative_to(folder).as_posix() for file in folder.glob("*/index.md")}
    lines = "\n".join(sorted(names))
    content[0] += f"\n```{{toctree}}\n:hidden:\n\n{lines}\n```\n"


def setup(app: Sphinx) -> None:
    """Connect the above."""
    app.connect("include-read", links_of_included)
    app.connect("source-read", contents_of_reference)
