"""An environment as a stranger has it: gem-bundle's wheel, what it needs, and no repository on the path."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.workers import shared_folder

ROOT = Path(__file__).parents[2]
# All that a wheel is built of.
SOURCES = ("core", "gems", "bundles", "setup.py", "pyproject.toml", "README.md", "LICENSE")
# What leads Python, Spark or gem-bundle to something that a stranger doesn't have. A session of this process
# has put its own Python into PYSPARK_PYTHON.
LEADING = ("PYTHON", "PYTEST_", "VIRTUAL_ENV", "PYSPARK_", "SPARK_", "GEM_BUNDLE_")


@pytest.fixture(scope="session")
def gem_bundle_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of gem-bundle, built from a copy of the sources: once for all workers."""

    def build(folder: Path) -> None:
        sources = folder / "sources"
        for name in SOURCES:
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
                shutil.copytree(ROOT / name, sources / name, ignore=ignored)
            else:
                shutil.copy(ROOT / name, sources / name)
        built(sources, into=folder)

    (wheel,) = shared_folder(tmp_path_factory, "wheel", build).glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def clean_site_packages(gem_bundle_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is installed in an environment that has gem-bundle's wheel; to be built upon, not to be changed."""

    def install(folder: Path) -> None:
        clean_environment(folder / "venv", gem_bundle_wheel)

    folder = shared_folder(tmp_path_factory, "clean", install)
    (found,) = folder.glob("venv/lib/python*/site-packages")
    return found


def built(*sources: Path, into: Path) -> list[Path]:
    """The wheels that pip builds of folders, in their order.

    Args:
        sources: The folders.
        into: Where the wheels are put.
    """
    found = []
    for folder in sources:
        before = set(into.glob("*.whl"))
        checked(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", into, folder)
        found += set(into.glob("*.whl")) - before
    assert len(found) == len(sources)
    return found


def clean_environment(folder: Path, *wheels: Path) -> Path:
    """The scripts of a virtual environment with wheels, and with what this one has but gem-bundle.

    What is installed here is linked, not installed again: Spark alone would take minutes.

    Args:
        folder: Where the environment is made.
        wheels: What is installed into it.
    """
    venv.create(folder)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    editable = re.compile(r"__editable__|_?gem_bundle\b|.*\.(pth|egg-link)$")
    for found in Path(sysconfig.get_path("purelib")).iterdir():
        if not editable.match(found.name):
            (site_packages / found.name).symlink_to(found)
    scripts = folder / "bin"
    for name in ("mypy", "pip", "pytest", "ruff"):
        script = scripts / name
        # -P, because a script of its own wouldn't look for modules in the current folder either.
        script.write_text(f'#!/bin/sh\nexec "{scripts}/python" -P -m {name} "$@"\n')
        script.chmod(0o755)
    checked(scripts / "pip", "install", "--no-deps", "--no-index", *wheels)
    found_at = checked(scripts / "python", "-P", "-c", "import gem_bundle; print(gem_bundle.__file__)")
    assert Path(found_at.strip()).is_relative_to(site_packages), f"{found_at} is on the path"
    return scripts


def clean_variables(scripts: Path | None = None) -> dict[str, str]:
    """The environment variables of somebody who doesn't have what these tests run in, on any path.

    Args:
        scripts: The scripts of an environment, which come before others of their names.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LEADING)}
    mine = Path(sysconfig.get_path("scripts"))
    path = [name for name in os.environ["PATH"].split(os.pathsep) if Path(name) != mine]
    return {
        **kept,
        "PATH": os.pathsep.join(path if scripts is None else [str(scripts), *path]),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        # The environment's own Spark is a link to this one, and Java takes classes from an archive by one path only.
        "SPARK_HOME": str(Path(sysconfig.get_path("purelib")) / "pyspark"),
    }


def checked(*command: str | Path) -> str:
    """What a program prints; that it fails is an error, with all that it says."""
    done = subprocess.run(
        command,
        env=clean_variables(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
