"""The lock of dependencies as a file."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.errors import GemError
from gem_bundler.bundle.model import LockedDistribution
from gem_bundler.dependencies.lock import DepsLock, Question

if TYPE_CHECKING:
    from pathlib import Path

QUESTION = Question(
    ("acme-gems==1.2", "gem-bundle[kafka]==0.1.0"),
    "3.11",
    "manylinux2014_x86_64",
    "4.2.0",
    (("acme-gems", ("click>=8",)),),
)
LOCK = DepsLock(
    QUESTION,
    (
        LockedDistribution(
            "acme-gems",
            "1.2+editable",
            "acme_gems-1.2+editable-py3-none-any.whl",
            "ab" * 32,
            ("click",),
            "Ünlicence",
            editable=True,
            packed=True,
            modules=("acme_gems",),
        ),
        LockedDistribution("click", "8.1", "click-8.1-py3-none-any.whl", "cd" * 32, modules=("click",)),
    ),
)


def test_a_lock_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "clicks.deps.lock"
    LOCK.write(path)

    assert DepsLock.read(path) == LOCK
    assert path.read_bytes() == LOCK.to_bytes()
    assert path.stat().st_mode & 0o777 == 0o644
    assert LOCK.modules() == {"acme_gems", "click"}
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_lock_is_text_that_is_good_to_review() -> None:
    text = LOCK.to_bytes().decode()

    assert text.startswith('{\n  "format": 1,\n  "python": "3.11",\n')
    assert text.endswith("}\n")
    assert "Ünlicence" in text
    assert '"packed": "editable"' in text


def test_an_equal_lock_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "clicks.deps.lock"
    LOCK.write(path)
    before = path.stat().st_ino

    LOCK.write(path)
    assert path.stat().st_ino == before
    DepsLock(QUESTION, ()).write(path)
    assert path.stat().st_ino != before


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(GemError, match=r"`clicks.deps.lock` can't be written") as caught:
        LOCK.write(tmp_path / "gone" / "clicks.deps.lock")

    assert caught.value.code == "GB647"


def test_a_lock_that_can_not_be_opened_is_told(tmp_path: Path) -> None:
    with pytest.raises(GemError, match="can't be read: Is a directory") as caught:
        DepsLock.read(tmp_path)

    assert caught.value.code == "GB647"


def changed(**changes: Any) -> bytes:
    return json.dumps({**json.loads(LOCK.to_bytes()), **changes}).encode()


def of_distribution(**changes: Any) -> bytes:
    content = json.loads(LOCK.to_bytes())
    content["distributions"][0].update(changes)
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"<<<<<<< ours\n{}",
        b"[]",
        b"{}",
        b"3",
        changed(requirements="acme"),
        changed(requirements=[3]),
        changed(python=3.11),
        changed(packed=[]),
        changed(distributions=None),
        changed(distributions=[[]]),
        of_distribution(sha256=None),
        of_distribution(file="../../evil.whl"),
        of_distribution(file="..\\evil.whl"),
        of_distribution(file="acme.tar.gz"),
    ],
)
def test_a_damaged_lock_is_not_guessed_at(content: bytes) -> None:
    with pytest.raises(GemError, match=r"`clicks.deps.lock` can't be read") as caught:
        DepsLock.from_bytes(content, "clicks.deps.lock")

    assert caught.value.code == "GB647"
    assert "--update-lock" in caught.value.hint


@pytest.mark.parametrize("written", [0, 2, "1"])
def test_another_format_is_refused(written: object) -> None:
    with pytest.raises(
        GemError, match=f"has the format {written}, and this gem-bundle reads format 1"
    ) as caught:
        DepsLock.from_bytes(changed(format=written))

    assert caught.value.code == "GB647"


def test_a_lock_for_the_same_has_no_differences() -> None:
    assert list(QUESTION.differences(replace(QUESTION))) == []


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (replace(QUESTION, python="3.12"), ["Python was 3.11 and is 3.12 now"]),
        (
            replace(QUESTION, platform="manylinux_2_28_x86_64"),
            ["the platform was manylinux2014_x86_64 and is manylinux_2_28_x86_64 now"],
        ),
        (replace(QUESTION, spark="4.1.1"), ["Spark was 4.2.0 and is 4.1.1 now"]),
        (
            replace(QUESTION, requirements=("acme-gems==1.3", "gem-bundle[kafka]==0.1.0")),
            ["`acme-gems==1.2` isn't wanted any more", "`acme-gems==1.3` is new"],
        ),
        (
            replace(QUESTION, packed=(("acme-gems", ("click>=9",)),)),
            ["`acme-gems` requires other distributions now"],
        ),
        (
            replace(QUESTION, packed=()),
            ["`acme-gems` was installed from elsewhere and comes from an index now"],
        ),
        (
            replace(QUESTION, packed=(*QUESTION.packed, ("click", ()))),
            ["`click` came from an index and is installed from elsewhere now"],
        ),
    ],
)
def test_differences_are_told_in_words(now: Question, said: list[str]) -> None:
    assert list(QUESTION.differences(now)) == said
