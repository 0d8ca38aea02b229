"""The reference: complete, up to date, and of any plugin's gems as of the built-in ones."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from pydantic import BaseModel, Field

from gem_bundle.cli import main
from gem_bundle.codes import CODES, GROUPS
from gem_bundle.describe import describe_fields, options_table, table
from gem_bundle.errors import PluginError
from gem_bundle.plugins import load_registry
from gem_bundle.reference import reference, stale, write
from gem_bundle.reference.__main__ import command
from gem_bundle.reference.docstrings import docstring_markdown
from gem_bundle.reference.hooks import hooks
from gem_bundle.reference.pages import MARK
from gem_bundle.settings import settings_model
from tests.core.cli.conftest import acme, install  # noqa: F401 (fixtures)

if TYPE_CHECKING:
    from tests.core.cli.conftest import Installer

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "reference"


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The reference of gem-bundle, whatever else is installed here."""
    return reference(load_registry({}), "gem-bundle")


# Up to date


def test_what_is_kept_is_what_is_installed(pages: dict[str, str]) -> None:
    assert stale(KEPT, pages) == {}, "scripts/docs writes them"


def test_a_release_changes_no_page_by_its_number(pages: dict[str, str]) -> None:
    found = [name for name, page in pages.items() if f"gem-bundle {version('gem-bundle')}" in page]
    assert found == []


def test_pages_are_written_and_compared(tmp_path: Path) -> None:
    pages = {"index.md": "# All", "gems/one.md": "# One\n"}
    (tmp_path / "mine.md").write_text("# Written by hand\n")

    assert write(tmp_path, pages) == {"gems/one.md": "missing", "index.md": "missing"}
    assert stale(tmp_path, pages) == {}
    assert (tmp_path / "gems" / "one.md").read_text() == f"{MARK}\n\n# One\n"

    (tmp_path / "index.md").write_text(f"{MARK}\n\n# Some\n")
    del pages["gems/one.md"]
    wrong = {"gems/one.md": "no such page any more", "index.md": "out of date"}
    assert stale(tmp_path, pages) == wrong
    assert write(tmp_path, pages) == wrong
    assert sorted(file.name for file in tmp_path.rglob("*.md")) == ["index.md", "mine.md"]
    assert stale(tmp_path, pages) == {}


# Complete


def test_every_gem_and_each_of_its_options_is_there(pages: dict[str, str]) -> None:
    count = 0
    for entry in load_registry({}):
        if entry.origin.distribution != "gem-bundle":
            continue
        page = pages[f"gems/{entry.kind}s/{entry.name}.md"]
        assert f"\n\n{entry.load().summary()}\n\n" in page
        assert "\n## Semantics\n" in page
        for option in describe_fields(entry.load().options_type):
            assert f"\n| `{option.name}` |" in page
            count += 1
    assert count > 250


def test_every_gem_is_listed_by_kind_and_by_family(pages: dict[str, str]) -> None:
    listed = pages["gems/index.md"]
    for entry in load_registry({}):
        if entry.origin.distribution == "gem-bundle":
            assert f"({entry.kind}s/{entry.name}.md)" in listed
            assert f"\n| `{entry.origin.plugin}` |" in listed
            assert f"[`{entry.name}`]({entry.name}.md)" in pages[f"gems/{entry.kind}s/index.md"]


def test_every_code_is_explained_with_what_breaks_and_what_keeps_it(pages: dict[str, str]) -> None:
    listed = pages["diagnostics/index.md"]
    for code in CODES.values():
        page = pages[f"diagnostics/{code.code[:3].lower()}.md"]
        assert f"[{code.code}]({code.code[:3].lower()}.md#{code.code.lower()})" in listed
        section = page.partition(f"\n## {code.code}\n")[2].partition("\n## ")[0]
        assert code.title in section
        assert code.why in section
        written = re.sub(r"\n```\n\n```\w+\n", "\n", section)  # one example can be several blocks
        for example in (code.breaks, code.keeps):
            assert [line for line in example.splitlines() if line and line not in written] == []


def test_every_code_belongs_to_a_group() -> None:
    assert {code[:3] for code in CODES} == GROUPS.keys()


def test_every_command_and_each_of_its_options_is_there(pages: dict[str, str]) -> None:
    import click

    page = pages["commands.md"]
    with click.Context(main, info_name="gem-bundle", **main.context_settings) as context:
        for name in main.list_commands(context):
            found = main.get_command(context, name)
            assert found is not None
            if not found.callback or not found.callback.__module__.startswith(("gem_bundle", "gem_bundler")):
                continue
            section = page.partition(f"\n## `gem-bundle {name}`\n")[2].partition("\n## ")[0]
            assert " ".join((found.help or "").split("\n\n")[0].split()) in section
            for parameter in found.params:
                if isinstance(parameter, click.Option):
                    where = page if parameter.name == "debug" else section
                    assert f"{parameter.opts[-1]}" in where, (name, parameter.name)


def test_every_hook_is_there_with_its_signature(pages: dict[str, str]) -> None:
    names = [name for name, _ in hooks()]
    assert len(names) >= 4
    for name in names:
        assert f"\n## `{name}`\n\n```python\ndef {name}(" in pages["hooks.md"]


def test_every_setting_and_variable_is_there(pages: dict[str, str]) -> None:
    page = pages["settings.md"]
    for key in describe_fields(settings_model()):
        assert key.description, key.name
        assert f"\n| `{key.name}` |" in page
    sources = "".join(
        file.read_text() for part in ("core", "bundles") for file in (ROOT / part).rglob("*.py")
    )
    used = set(re.findall(r'"(GEM_BUNDLE_[A-Z]+(?:_[A-Z]+)*)', sources))
    assert len(used) >= 6
    assert {name for name in used if f"| `{name}" not in page} == set()


def test_the_keys_of_a_pipeline_file_are_there_with_those_of_its_sections(pages: dict[str, str]) -> None:
    page = pages["pipeline-file.md"]
    for key in ("pipeline", "output_mode", "inputs", "available_now", "cluster.workers.min", "profiles"):
        assert f"\n| `{key}` |" in page
    # A profile of a job takes what the job takes; it isn't said twice.
    assert "`profiles.cluster`" not in page
    assert re.search(r"\| `targets` \| mapping \| required \|", page)


def test_links_lead_somewhere(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        for target, anchor in re.findall(r"\]\(([\w./-]*)#?([\w-]*)\)", page):
            other = (Path("/") / name).parent / target if target else Path("/") / name
            found = pages.get(str(other.resolve()).removeprefix("/"))
            assert found is not None, (name, target)
            headings = re.findall(r"^#+ `?([^`\n]+)`?$", found, re.M)
            assert not anchor or anchor in [heading.lower().replace(" ", "-") for heading in headings]


# Anybody's


@pytest.mark.usefixtures("acme")
def test_a_plugin_documents_its_own_gems() -> None:
    pages = reference(load_registry(), "acme-gems")

    assert sorted(pages) == [
        "gems/index.md",
        "gems/sources/index.md",
        "gems/sources/orders.md",
        "gems/targets/index.md",
        "gems/targets/orders.md",
        "gems/transforms/index.md",
        "gems/transforms/route.md",
        "index.md",
    ]
    assert pages["index.md"] == "# Reference of `acme-gems`\n\n- [Gems](gems/index.md)"
    orders = pages["gems/sources/orders.md"]
    assert orders.startswith(
        "# `orders` (source)\n\nRead orders | from Acme.\n\nAcme keeps `orders` for seven days."
    )
    assert "\n| `password` | secret text |  | The password. Its value is never printed. |\n" in orders
    assert "From `acme-gems`." in orders
    # Within a table a bar would begin another cell.
    assert r"| Read orders \| from Acme. | stream or batch | yes |" in pages["gems/sources/index.md"]


@pytest.mark.usefixtures("acme")
def test_the_reference_of_all_that_is_installed_names_distributions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEM_BUNDLE_PLUGINS", "acme,rate")
    pages = reference(load_registry())

    assert "| `acme` | `acme-gems` | [`orders`]" in pages["gems/index.md"]
    assert "| `rate` | `gem-bundle` | [`generate`]" in pages["gems/index.md"]
    assert "hooks.md" in pages


@pytest.mark.usefixtures("acme")
def test_a_plugin_keeps_its_pages_fresh(tmp_path: Path) -> None:
    arguments = [str(tmp_path), "--distribution", "acme-gems"]
    written = CliRunner().invoke(command, arguments)
    assert written.exit_code == 0
    assert f"{tmp_path}/gems/sources/orders.md: written\n" in written.output

    fresh = CliRunner().invoke(command, [*arguments, "--check"])
    assert (fresh.exit_code, fresh.output) == (0, "")

    page = tmp_path / "gems" / "sources" / "orders.md"
    page.write_text(page.read_text().replace("seven", "eight"))
    told = CliRunner().invoke(command, [*arguments, "--check"])
    assert told.exit_code == 1
    assert told.output == (
        f"{page}: out of date\n1 of 8 pages differ from what is installed: run this without --check.\n"
    )
    assert "eight" in page.read_text()


def test_a_distribution_without_gems_has_no_reference(tmp_path: Path) -> None:
    told = CliRunner().invoke(command, [str(tmp_path / "new"), "--distribution", "acme-gem"])
    assert told.exit_code == 1
    assert "`acme-gem` brings no gems, sections or commands" in told.output
    assert not (tmp_path / "new").exists()


def test_a_gem_that_cannot_be_loaded_is_said(install: Installer, tmp_path: Path) -> None:  # noqa: F811
    install(
        "torn",
        "from gem_bundle import hookimpl\n\n@hookimpl\ndef gem_bundle_register_gems(register):\n"
        "    register('source', 'torn', 'torn_gems:Torn')\n",
    )
    with pytest.raises(PluginError, match=r"source `torn` of `torn-gems 1\.0` can't be loaded"):
        reference(load_registry(), "torn-gems")
    told = CliRunner().invoke(command, [str(tmp_path), "--distribution", "torn-gems"])
    assert told.exit_code == 1
    assert "can't be loaded" in told.output


# Pieces

DOCSTRING = """Do it; see ``other``.

    It has ``two``
    lines::

        a = 1

        b = 2

    Not code.

    Args:
        first: The first,
            which is long.
        second: The ``second``.

    Raises:
        ValueError: When it is: wrong.
    """


def test_docstrings_become_markdown() -> None:
    assert docstring_markdown(DOCSTRING) == (
        "Do it; see `other`.\n\nIt has `two` lines:\n\n```python\na = 1\n\nb = 2\n```\n\nNot code.\n\n"
        "**Args:**\n\n- `first`: The first, which is long.\n- `second`: The `second`.\n\n"
        "**Raises:**\n\n- `ValueError`: When it is: wrong."
    )


def test_a_table_keeps_bars_and_line_breaks_within_cells() -> None:
    assert table(("a", "b"), [("`x|y`", "two\nlines")]) == "| a | b |\n|---|---|\n| `x\\|y` | two lines |"


class Inner(BaseModel):
    """A part."""

    size: int = Field(3, description="How large.")


class Outer(BaseModel):
    """A whole, with parts and wholes."""

    part: Inner = Field(Inner(), description="A part.")
    wholes: dict[str, Outer] = Field({}, description="More.")


def test_a_model_within_itself_is_described_once() -> None:
    assert [key.name for key in describe_fields(Outer)] == ["part", "part.size", "wholes"]
    assert options_table(describe_fields(Outer), "key") == (
        "| key | type | default | description |\n|---|---|---|---|\n| `part` | mapping |  | A part. |\n"
        "| `part.size` | whole number | `3` | How large. |\n"
        "| `wholes` | mapping of texts to mappings |  | More. |"
    )
