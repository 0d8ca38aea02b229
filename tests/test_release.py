"""A release: what is made of a commit, what keeps it from being made, and who publishes it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A Developer", "-c", "user.email=developer@example.com")
    return subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What is here, committed, changes included."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    listed = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "Everything")
    return folder


def release(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [checkout / "scripts" / "release", *arguments],
        cwd="/",
        env={**os.environ, "TMPDIR": str(checkout.parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def date_the_changelog(checkout: Path) -> None:
    file = checkout / "CHANGELOG.md"
    text = re.sub(
        rf"^## {re.escape(VERSION)} \(.*\)$", f"## {VERSION} (2027-01-31)", file.read_text(), flags=re.M
    )
    file.write_text(text)
    git(checkout, "commit", "--quiet", "--all", "--allow-empty", "-m", "Date it")


@pytest.mark.programs
def test_what_keeps_a_release_from_being_made(checkout: Path, tmp_path: Path) -> None:
    (checkout / "CHANGELOG.md").write_text(f"# Changelog\n\n## {VERSION} (not released yet)\n")
    said = release(checkout)
    assert (said.returncode, said.stdout) == (1, "")
    assert "changes that aren't committed" in said.stderr

    git(checkout, "commit", "--quiet", "--all", "-m", "Another changelog")
    said = release(checkout)
    assert (said.returncode, said.stdout) == (1, "")
    assert f"CHANGELOG.md has no line '## {VERSION} (DATE)'" in said.stderr

    date_the_changelog(checkout)
    git(checkout, "tag", "v9.9.9")
    said = release(checkout)
    assert (said.returncode, said.stdout) == (1, "")
    assert f"the commit has the tag v9.9.9, and pyproject.toml the version {VERSION}" in said.stderr

    git(checkout, "tag", "--delete", "v9.9.9")
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "old.whl").touch()
    said = release(checkout, str(tmp_path / "dist"))
    assert (said.returncode, said.stdout) == (1, "")
    assert "isn't empty" in said.stderr
    assert not (checkout / "dist").exists()


@pytest.mark.spark
@pytest.mark.network
@pytest.mark.sample(0)  # minutes: two environments with Spark, and the README's tour in each
def test_what_a_release_is_made_of(checkout: Path, tmp_path: Path) -> None:
    date_the_changelog(checkout)
    git(checkout, "tag", f"v{VERSION}")
    stray = checkout / "core" / "gem_bundle" / "__pycache__" / "stray.pyc"
    stray.parent.mkdir()
    stray.write_text("ignored by git, and by a release")
    made = tmp_path / "made"

    said = release(checkout, str(made))

    assert said.returncode == 0, said.stdout + said.stderr
    assert said.stdout.count("commands of README.md print what it says") == 2
    wheel, sdist = f"gem_bundle-{VERSION}-py3-none-any.whl", f"gem_bundle-{VERSION}.tar.gz"
    bill = f"gem_bundle-{VERSION}.cdx.json"
    assert sorted(file.name for file in made.iterdir()) == sorted([wheel, sdist, bill, "SHA256SUMS"])
    sums = dict(line.split("  ")[::-1] for line in (made / "SHA256SUMS").read_text().splitlines())
    assert sums == {name: sha256((made / name).read_bytes()).hexdigest() for name in (wheel, sdist, bill)}

    # Every module and every file that belongs to a package is in both, and nothing else of the repository is in the wheel.
    committed = git(checkout, "ls-files", "core", "gems", "bundles").splitlines()
    packages = {name.partition("/")[2] for name in committed}
    with zipfile.ZipFile(made / wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert inside == packages
    with tarfile.open(made / sdist) as archive:
        assert {f"gem_bundle-{VERSION}/{name}" for name in committed} <= set(archive.getnames())
    described = json.loads((made / bill).read_text())
    assert described["metadata"]["component"]["name"] == "gem-bundle"
    assert {"pluggy", "pydantic", "sqlglot"} <= {part["name"] for part in described["components"]}


def test_who_publishes() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    # Before YAML 1.2 `on` is a truth value.
    assert workflow[True] == {"push": {"tags": ["v*"]}}
    made, published = workflow["jobs"]["make"], workflow["jobs"]["publish"]
    assert [step["run"] for step in made["steps"] if "run" in step] == ["scripts/test", "scripts/release"]
    assert published["needs"] == "make"
    assert (workflow["permissions"], published["permissions"]) == (
        {"contents": "read"},
        {"id-token": "write"},
    )
    assert published["steps"][-1] == {"uses": "pypa/gh-action-pypi-publish@release/v1"}
