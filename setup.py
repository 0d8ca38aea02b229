"""One distribution, three source roots: the runtime, the built-in gems and the bundler.

Everything else about the distribution stands in ``pyproject.toml``; only what has to look at the
folders is here.
"""

from pathlib import Path

from setuptools import find_packages, setup

ROOTS = ("core", "gems", "bundles")
HERE = Path(__file__).parent


def _packages() -> tuple[list[str], dict[str, str]]:
    packages: list[str] = []
    folders: dict[str, str] = {}
    for root in ROOTS:
        for package in find_packages(str(HERE / root)):
            packages.append(package)
            if "." not in package:
                folders[package] = f"{root}/{package}"
    return packages, folders


def _gem_entry_points(packages: list[str]) -> list[str]:
    """One entry point for each gem family: ``rate = gem_rate``."""
    families = (p for p in packages if p.startswith("gem_") and "." not in p)
    return [f"{p.removeprefix('gem_')} = {p}" for p in sorted(families) if p not in NOT_GEMS]


NOT_GEMS = {"gem_bundle", "gem_bundler"}
PACKAGES, FOLDERS = _packages()

setup(
    packages=PACKAGES,
    package_dir=FOLDERS,
    entry_points={
        "console_scripts": ["gem-bundle = gem_bundle.cli:entry"],
        "gem_bundle": [*_gem_entry_points(PACKAGES), "bundler = gem_bundler"],
        "gem_bundle.commands": ["bundler = gem_bundler"],
        "pytest11": ["gem_bundle = gem_bundle.testing.plugin"],
    },
)
