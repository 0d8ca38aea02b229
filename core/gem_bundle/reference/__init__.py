"""The reference as Markdown: gems, commands, hooks, diagnostics, settings, and keys of files and of JSON.

It is made from what is running: the registry of gems, the commands, the models and the catalogue of codes. A
plugin's authors make the pages of their own gems, commands and sections with it::

    python -m gem_bundle.reference docs/reference --distribution acme-gems

and keep them fresh in CI with ``--check``. The pages are plain Markdown, with relative links, for any
generator of sites.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from gem_bundle.reference.pages import stale as stale
from gem_bundle.reference.pages import write as write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.plugins import Registry

OWN = "gem-bundle"


def reference(registry: Registry, distribution: str | None = None) -> dict[str, str]:
    """The pages of the reference, by the names of their files.

    Args:
        registry: The gems and sections to describe.
        distribution: Describe only what this distribution brings: gems, sections and commands. By default
            all that is installed. The hooks, diagnostics and settings are gem-bundle's own, and left out
            for another distribution.

    Raises:
        PluginError: When a gem, a section or a command can't be loaded.
    """
    pages = dict(_pages(registry, distribution))
    rows = [f"- [{_title(page)}]({name})" for name, page in pages.items() if _top(name)]
    whose = f" of `{distribution}`" if distribution not in {None, OWN} else ""
    return {"index.md": f"# Reference{whose}\n\n" + "\n".join(rows), **pages}


def _pages(registry: Registry, distribution: str | None) -> Iterator[tuple[str, str]]:
    from gem_bundle.cli import main
    from gem_bundle.cli.commands import plugin_commands
    from gem_bundle.cli.main import COMMANDS
    from gem_bundle.reference.commands import commands_page
    from gem_bundle.reference.gems import gem_pages
    from gem_bundle.reference.pipeline_file import pipeline_file_page, section_page

    def wanted(origin: str) -> bool:
        return distribution in {None, origin}

    own = wanted(OWN)
    entries = [entry for entry in registry if wanted(entry.origin.distribution)]
    if entries:
        yield from gem_pages("gems", entries)
    sections = [section for section in registry.sections.values() if wanted(section.origin.distribution)]
    if own:
        yield "pipeline-file.md", pipeline_file_page(sections)
    else:
        for section in sections:
            yield f"{section.name}.md", section_page(section)
    added = [name for name, command in plugin_commands().items() if wanted(command.origin)]
    names = [*(COMMANDS if own else ()), *(name for name in added if name not in COMMANDS)]
    if names:
        yield "commands.md", commands_page(main, "gem-bundle", names)
    if own:
        from gem_bundle.reference.answers import answers_page
        from gem_bundle.reference.declared_tests import declared_tests_page
        from gem_bundle.reference.diagnostics import diagnostics_pages
        from gem_bundle.reference.hooks import hooks_page
        from gem_bundle.reference.settings import settings_page
        from gem_bundle.reference.types import types_page

        yield "test-file.md", declared_tests_page()
        yield "settings.md", settings_page()
        yield "json-of-runs.md", answers_page()
        yield "hooks.md", hooks_page()
        yield "types.md", types_page()
        if find_spec("pytest") is not None:
            from gem_bundle.reference.conformance import conformance_page

            yield "conformance.md", conformance_page()
        yield from diagnostics_pages("diagnostics")


def _top(name: str) -> bool:
    folder, _, file = name.rpartition("/")
    return not folder or (file == "index.md" and "/" not in folder)


def _title(page: str) -> str:
    return page.partition("\n")[0].removeprefix("# ")
