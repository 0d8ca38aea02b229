"""What the package index in use hasn't got, asked of a folder that stands for one."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from gem_bundle.errors import GemError
from gem_bundler.bundle.target_platform import Target
from gem_bundler.dependencies.published import missing_from_index
from tests.bundles.installing import Made

if TYPE_CHECKING:
    from pathlib import Path

HERE = Target("3.11")
ELSEWHERE: dict[str, object] = {"url": "https://example.com/acme.git", "vcs_info": {"vcs": "git"}}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    (tmp_path / "site").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.syspath_prepend(tmp_path / "site")
    return folder


@pytest.mark.programs
def test_every_distribution_that_is_missing_is_told(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited = Made("acme-edited", requires=("acme-inner",))
    project = tmp_path / "project"
    project.mkdir()
    edited.develop(tmp_path / "site", project)
    monkeypatch.syspath_prepend(project)
    Made("acme-inner", "2.1").install(tmp_path / "site", ELSEWHERE)
    published = Made("acme-published", "3.0")
    published.publish(index)
    published.install(tmp_path / "site", ELSEWHERE)

    found = missing_from_index(["acme-edited==1.0", "acme-published==3.0", "acme-unknown>=4"], HERE)

    assert found == ("acme-edited==1.0+editable", "acme-inner==2.1", "acme-unknown>=4")


def test_what_was_installed_from_an_index_is_not_asked_for(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Made("acme-gems").install(tmp_path / "site")

    def refuse(*_arguments: object, **_options: object) -> None:
        raise AssertionError("pip was asked")

    monkeypatch.setattr(subprocess, "run", refuse)

    assert missing_from_index(["acme-gems==1.0"], HERE) == ()


@pytest.mark.programs
def test_an_index_that_is_away_is_told_and_nothing_is_called_missing(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Made("acme-gems").install(tmp_path / "site", ELSEWHERE)
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")

    with pytest.raises(GemError) as caught:
        missing_from_index(["acme-gems==1.0"], HERE)

    assert caught.value.code == "GB644"
