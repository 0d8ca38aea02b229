"""Plugins as their users live with them: installed, upgraded, edited, broken, doubled and removed with pip.

Everything is real but the network: a virtual environment of its own for each test, upon one that has
gem-bundle's wheel, other wheels that were built here, and the commands as a user types them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gem_bundle.scaffold import gem_names, gem_tree, write
from tests.benchmarks.plugins import PIPELINE, PLUGINS, install
from tests.bundles.installing import Made
from tests.counting import calls_of_command
from tests.kit.clean import clean_variables
from tests.samples import some_of
from tests.tours import virtual_environment

if TYPE_CHECKING:
    from pathlib import Path

a_life_of_a_gem = some_of("gems that come, change and go", 2)

PAYMENTS = """
pipeline: payments
mode: batch
sources:
  payments: {gem: rows, options: {rows: [{id: 1, card: "4000123412341234"}]}}
transforms:
  masked: {gem: acme_mask, input: payments, options: {column: card, keep: 2}}
targets:
  nowhere: {gem: noop, input: masked}
"""
TICKS = """
pipeline: ticks
sources:
  ticks: {gem: rate}
targets:
  nowhere: {gem: noop, input: ticks}
"""
REGISTRATION = """
from gem_bundle import hookimpl

@hookimpl
def gem_bundle_register_gems(register):
    register("transform", "acme_mask", "{module}.mask:Mask")
"""
GEM = """
from gem_bundle import Field, Options, Transform

class MaskOptions(Options):
    column: str = Field(description="The column.")
    keep: int = Field(1, description="How many stay.")

class Mask(Transform[MaskOptions]):
    \"\"\"Mask a column as {module} does it.\"\"\"

    example = {{"column": "card"}}

    def apply(self, df):
        return df.drop(self.options.column)
"""


class Environment:
    """A virtual environment, with what a user does in it."""

    def __init__(self, folder: Path, parent: Path) -> None:
        self.folder = folder
        self._bin = virtual_environment(folder / "venv", parent)
        (folder / "payments.yaml").write_text(PAYMENTS)
        (folder / "ticks.yaml").write_text(TICKS)

    def pip(self, *arguments: str | Path) -> None:
        done = self._run("pip", *map(str, arguments))
        assert done.returncode == 0, done.stdout + done.stderr

    def install(self, *what: str | Path) -> None:
        self.pip("install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", *what)

    def made(self, made: Made) -> None:
        self.install(made.publish(self.folder / "wheels"))

    def gem_bundle(self, *arguments: str, **environment: str) -> tuple[int, str]:
        """The exit status, and all that is printed."""
        done = self._run("gem-bundle", *arguments, **environment)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout + done.stderr

    def _run(self, command: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._bin / command, *arguments],
            cwd=self.folder,
            env={**clean_variables(self._bin), "NO_COLOR": "1", **environment},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def here(tmp_path: Path, clean_site_packages: Path) -> Environment:
    return Environment(tmp_path, clean_site_packages)


def plugin(name: str, **files: str) -> Made:
    """A distribution with the transform `acme_mask`, or with what is given in place of its modules."""
    module = name.replace("-", "_")
    texts = {"__init__": REGISTRATION, "mask": GEM, **files}
    return Made(
        name,
        files={f"{module}/{file}.py": text.format(module=module).encode() for file, text in texts.items()},
        entry_points=f"[gem_bundle]\n{module} = {module}\n",
    )


@a_life_of_a_gem
@pytest.mark.programs
def test_a_gem_comes_changes_and_goes(here: Environment) -> None:
    status, said = here.gem_bundle("check", "payments.yaml")
    assert status == 1
    assert "error[GB201]: `masked`: there is no transform gem `acme_mask`" in said
    assert here.gem_bundle("describe", "acme_mask")[0] == 2

    project = write(gem_tree(gem_names("acme_mask", "transform")), here.folder)
    here.install(project)
    assert re.search(
        r"^transform +acme_mask +gem-acme-mask 0\.1\.0 ", here.gem_bundle("gems")[1], re.MULTILINE
    )
    assert here.gem_bundle("check", "payments.yaml") == (0, "payments.yaml: ok (3 nodes)\n")
    assert "  keep: " in here.gem_bundle("describe", "acme_mask")[1]

    # The next version calls an option otherwise.
    code = project / "src" / "gem_acme_mask" / "transform.py"
    code.write_text(code.read_text().replace("keep", "shown"))
    setup = project / "pyproject.toml"
    setup.write_text(setup.read_text().replace('version = "0.1.0"', 'version = "0.2.0"'))
    here.install("--upgrade", project)
    assert "gem-acme-mask 0.2.0" in here.gem_bundle("gems")[1]
    assert "  shown: " in here.gem_bundle("describe", "acme_mask")[1]
    status, said = here.gem_bundle("check", "payments.yaml")
    assert status == 1
    assert "error[GB204]: `masked`: `acme_mask` has no option `keep`" in said

    here.pip("uninstall", "--quiet", "--yes", "gem-acme-mask")
    assert "acme" not in here.gem_bundle("gems")[1]
    status, said = here.gem_bundle("check", "payments.yaml")
    assert status == 1
    assert "GB201" in said


@a_life_of_a_gem
@pytest.mark.programs
def test_what_is_edited_is_there_at_once_and_what_is_deleted_is_missed(here: Environment) -> None:
    project = write(gem_tree(gem_names("acme_mask", "transform")), here.folder)
    here.install("--editable", project)
    assert here.gem_bundle("check", "payments.yaml")[0] == 0

    code = project / "src" / "gem_acme_mask" / "transform.py"
    code.write_text(code.read_text().replace("keep", "shown"))
    assert "has no option `keep`" in here.gem_bundle("check", "payments.yaml")[1]

    # The folder goes, and pip isn't told.
    shutil.rmtree(project)
    status, said = here.gem_bundle("gems")
    assert status == 0
    assert "1 problem" in said
    assert "The plugin `acme_mask` of `gem-acme-mask 0.1.0` can't be loaded: ModuleNotFoundError" in said
    status, said = here.gem_bundle("check", "payments.yaml")
    assert status == 1
    assert "Some plugins could not be loaded (gem-acme-mask 0.1.0)" in said
    # It is in nobody else's way.
    status, said = here.gem_bundle("check", "ticks.yaml")
    assert status == 0
    assert "warning[GB203]: the plugin `acme_mask` of `gem-acme-mask 0.1.0` can't be loaded" in said
    quiet = here.gem_bundle("check", "ticks.yaml", GEM_BUNDLE_DISABLE_PLUGINS="acme_mask")
    assert quiet == (0, "ticks.yaml: ok (2 nodes)\n")


@pytest.mark.programs
@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("def broken(:\n", "SyntaxError"),
        ("import no_such_client\n", "ModuleNotFoundError: No module named 'no_such_client'"),
        ("raise SystemExit('no licence')\n", "SystemExit: no licence"),
        (REGISTRATION.replace("register_gems", "register_gem"), "unknown hook 'gem_bundle_register_gem'"),
        (REGISTRATION.replace('"transform"', '"filter"'), "a gem is a source, transform or target"),
    ],
)
def test_a_plugin_that_breaks_is_named_and_takes_nothing_down(
    text: str, problem: str, here: Environment
) -> None:
    here.made(plugin("acme-masks", __init__=text))

    status, said = here.gem_bundle("gems")
    assert status == 0
    assert "  warning: The plugin `acme_masks` of `acme-masks 1.0` can't be loaded: " in said
    assert problem in said
    status, said = here.gem_bundle("check", "ticks.yaml")
    assert status == 0
    assert "ticks.yaml: ok (2 nodes)\nwarning[GB203]: the plugin `acme_masks` of `acme-masks 1.0`" in said


@a_life_of_a_gem
@pytest.mark.programs
def test_a_gem_that_breaks_is_in_the_way_of_those_who_use_it_only(here: Environment) -> None:
    here.made(plugin("acme-masks", mask="import no_such_client\n"))

    status, said = here.gem_bundle("check", "payments.yaml")
    assert status == 1
    assert "error[GB202]: `masked`" in said
    assert "No module named 'no_such_client'" in said
    assert "Update or remove the distribution `acme-masks 1.0`" in said
    assert here.gem_bundle("check", "ticks.yaml") == (0, "ticks.yaml: ok (2 nodes)\n")
    assert "can't be loaded, see below" in here.gem_bundle("gems")[1]

    # The authors correct it.
    mended = plugin("acme-masks")
    mended.version = "1.1"
    here.made(mended)
    assert here.gem_bundle("check", "payments.yaml")[0] == 0


@a_life_of_a_gem
@pytest.mark.programs
def test_two_gems_of_one_name_are_told_apart_by_who_brings_them(here: Environment) -> None:
    here.made(plugin("acme-masks"))
    assert here.gem_bundle("check", "payments.yaml")[0] == 0
    here.made(plugin("other-masks"))

    both = "`acme-masks 1.0` (plugin `acme_masks`) and `other-masks 1.0` (plugin `other_masks`)"
    status, said = here.gem_bundle("gems")
    assert status == 0
    assert f"The transform gem `acme_mask` is registered by {both}." in said
    status, said = here.gem_bundle("check", "payments.yaml")
    assert status == 1
    assert f"error[GB202]: `masked`: the transform gem `acme_mask` is registered by {both}" in said
    assert here.gem_bundle("check", "ticks.yaml")[0] == 0

    # One is switched off, or goes.
    assert here.gem_bundle("check", "payments.yaml", GEM_BUNDLE_DISABLE_PLUGINS="other_masks")[0] == 0
    described = here.gem_bundle("describe", "acme_mask", GEM_BUNDLE_DISABLE_PLUGINS="acme_masks")[1]
    assert "Mask a column as other_masks does it." in described
    here.pip("uninstall", "--quiet", "--yes", "acme-masks")
    assert here.gem_bundle("check", "payments.yaml")[0] == 0
    assert "other-masks 1.0" in here.gem_bundle("describe", "acme_mask")[1]


# Many of them


@pytest.mark.programs
def test_plugins_cost_the_help_nothing(tmp_path: Path) -> None:
    plugins = install(tmp_path / "plugins", PLUGINS)
    (tmp_path / "none").mkdir()
    for number in range(PLUGINS):
        loaded = plugins / f"gem_dummy_{number}" / "__init__.py"
        loaded.write_text(f"{loaded.read_text()}\nprint('loaded', flush=True)\n")

    done = subprocess.run(
        [sys.executable, "-m", "gem_bundle", "--help"],
        env={**os.environ, "PYTHONPATH": str(plugins)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "loaded" not in done.stdout
    assert calls_of_command("--help", path=plugins) < 1.2 * calls_of_command("--help", path=tmp_path / "none")


@pytest.mark.programs
def test_a_check_that_uses_one_of_many_plugins_pays_little_for_each(tmp_path: Path) -> None:
    many = install(tmp_path / "many", PLUGINS)
    one = install(tmp_path / "one", 1)
    file = tmp_path / "one_of_many.yaml"
    file.write_text(PIPELINE)

    more = calls_of_command("check", file, path=many) - calls_of_command("check", file, path=one)

    assert more < (PLUGINS - 1) * 1_800


@pytest.mark.programs
def test_only_the_gem_that_is_used_is_imported(tmp_path: Path) -> None:
    folder = install(tmp_path / "plugins", 5)
    file = tmp_path / "one_of_many.yaml"
    file.write_text(PIPELINE)
    probe = (
        "import sys\nfrom gem_bundle.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print(sorted(name for name in sys.modules if name.startswith('gem_dummy') and name.endswith('source')))"
    )

    done = subprocess.run(
        [sys.executable, "-c", probe, "check", str(file)],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines()[-1] == "['gem_dummy_0.source']"
