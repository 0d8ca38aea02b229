"""What is remembered of bundles that executors have loaded, and what makes another one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gem_bundler.bundle.model import BundleFile, GemUse
from gem_bundler.proof.proofs import Proofs
from tests.bundles.making import CLEAN, JOBS, draft, write_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gem_bundler.bundle.manifest import Manifest


def file(path: str, content: str) -> BundleFile:
    return BundleFile(path, content * 64, 1)


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    """What a bundle of one pipeline and one module says of itself."""
    project = write_files(tmp_path / "project", {"ticks.yaml": CLEAN, "jobs.py": JOBS})
    return draft(
        project,
        version="0.1.0+g0",
        deps="deps.tar.gz",
        gems=(GemUse("source", "rate", "gem-bundle", "0.1.0"),),
        contents=(file("jobs.py", "a"), file("ticks_bundle/project/ticks.yaml", "b")),
        files=(file("deps.tar.gz", "c"), file("submit.sh", "d")),
    )


def test_nothing_is_known_before_it_is_kept(manifest: Manifest, tmp_path: Path) -> None:
    proofs = Proofs(tmp_path / "cache")
    assert not proofs.has(manifest)
    proofs.keep(manifest)
    assert proofs.has(manifest)
    assert Proofs(tmp_path / "cache").has(manifest)
    assert not Proofs(tmp_path / "other").has(manifest)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda m: {"version": "0.1.0+g1", "description": "Another one."}, id="the version"),
        pytest.param(
            lambda m: {"contents": (m.contents[0], file(m.contents[1].path, "e"))}, id="the pipeline file"
        ),
        pytest.param(lambda m: {"files": (m.files[0], file("submit.sh", "e"))}, id="a job definition"),
    ],
)
def test_what_executors_never_load_makes_no_difference(
    manifest: Manifest, tmp_path: Path, change: Callable[[Manifest], dict[str, object]]
) -> None:
    proofs = Proofs(tmp_path)
    proofs.keep(manifest)
    assert proofs.has(replace(manifest, **change(manifest)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda m: {"contents": (file("jobs.py", "e"), m.contents[1])}, id="a module"),
        pytest.param(lambda m: {"contents": (*m.contents, file("more.py", "e"))}, id="a file more"),
        pytest.param(lambda m: {"files": (file("deps.tar.gz", "e"), m.files[1])}, id="the dependencies"),
        pytest.param(lambda m: {"modules": ("jobs", "more")}, id="the modules"),
        pytest.param(lambda m: {"package": "others_bundle"}, id="the package"),
        pytest.param(
            lambda m: {"gems": (*m.gems, GemUse("target", "noop", "gem-bundle", "0.1.0"))}, id="the gems"
        ),
    ],
)
def test_what_executors_load_makes_another_one(
    manifest: Manifest, tmp_path: Path, change: Callable[[Manifest], dict[str, object]]
) -> None:
    proofs = Proofs(tmp_path)
    proofs.keep(manifest)
    assert not proofs.has(replace(manifest, **change(manifest)))  # type: ignore[arg-type]


def test_another_spark_is_another_one(
    manifest: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proofs = Proofs(tmp_path)
    proofs.keep(manifest)
    monkeypatch.setattr("gem_bundler.proof.proofs.spark_version", lambda: "4.1.1")
    assert not proofs.has(manifest)
