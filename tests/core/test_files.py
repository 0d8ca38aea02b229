"""Small files beside the data: as a whole or not at all, wherever it lies."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from gem_bundle.files import NEW_CREDENTIALS, NoFilesError, advice, numbered, open_folder, split

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.files import Folder
    from tests.s3_server import S3


class Renaming(LocalFileSystem):  # type: ignore[misc]
    """A file system like HDFS: what is written is seen while it is written, and files can be renamed."""

    protocol = "renaming"
    fails = False

    def pipe_file(self, path: str, value: bytes, **kwargs: Any) -> None:
        super().pipe_file(path, value[: len(value) // 2] if self.fails else value, **kwargs)
        if self.fails:
            raise OSError("no space left on device")


@pytest.fixture(params=["local", "file", "memory", "renaming", pytest.param("s3", marks=pytest.mark.network)])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    if request.param == "s3":
        return open_folder(request.getfixturevalue("s3").place())
    if request.param == "memory":
        return open_folder(f"memory://{uuid.uuid4().hex}/a")
    if request.param == "renaming":
        inner = Renaming(skip_instance_cache=True)
        monkeypatch.setattr(fsspec.core, "url_to_fs", lambda url: (inner, str(tmp_path / "a")))
        return open_folder("hdfs://node/a")
    return open_folder(f"{'file:' if request.param == 'file' else ''}{tmp_path}/a")


def test_files_are_written_read_listed_and_removed(folder: Folder) -> None:
    assert folder.names() == []
    folder.write("one", b"1")
    folder.write("one", b"11")
    folder.create("two", b"22")
    assert sorted(folder.names()) == ["one", "two"]
    assert (folder.read("one"), folder.read("two"), folder.size("two")) == (b"11", b"22", 2)
    folder.remove("one")
    folder.remove("one")
    assert folder.names() == ["two"]


def test_what_is_not_there_can_not_be_read(folder: Folder) -> None:
    with pytest.raises(FileNotFoundError):
        folder.read("absent")
    with pytest.raises(FileNotFoundError):
        folder.size("absent")


def test_a_file_that_is_there_is_not_created_again(folder: Folder) -> None:
    folder.create("one", b"1")
    with pytest.raises(FileExistsError):
        folder.create("one", b"2")
    assert folder.read("one") == b"1"


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = open_folder(str(tmp_path))
    folder.write("one", b"old")

    def refuse(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", refuse)
        with pytest.raises(OSError, match="no space"):
            folder.write("one", b"new")
    assert folder.names() == ["one"]
    assert folder.read("one") == b"old"


def test_one_that_fails_where_files_are_renamed_does_so_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = Renaming(skip_instance_cache=True)
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda url: (inner, str(tmp_path / "a")))
    folder = open_folder("hdfs://node/a")
    folder.write("one", b"old")
    inner.fails = True
    with pytest.raises(OSError, match="no space"):
        folder.write("one", b"new text")
    assert folder.read("one") == b"old"


def test_a_place_that_nothing_here_can_read_says_so() -> None:
    with pytest.raises(NoFilesError, match="wasbs"):
        open_folder("wasbs://box@account/checkpoints")


def test_places_of_databricks_are_found_where_a_cluster_mounts_them() -> None:
    assert open_folder("dbfs:/Volumes/main/web/c").location == "/Volumes/main/web/c"
    assert open_folder("dbfs:/checkpoints/c").location == "/dbfs/checkpoints/c"


def test_names_and_numbers() -> None:
    assert split("s3a://bucket/a/b/") == ("s3a://bucket/a", "b")
    assert split("/b") == ("/", "b")
    assert sorted(numbered(["10", "9", ".9.crc", "9.tmp", "x", "²"])) == [9, 10]


@pytest.mark.network
def test_of_many_who_create_an_object_at_once_one_does(s3: S3) -> None:
    """By a conditional write: S3 has them, and so has the server here."""
    place = s3.place()

    def create(number: int) -> bool:
        try:
            open_folder(place).create("lease", str(number).encode())
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(create, range(24)))
    assert made.count(True) == 1
    assert open_folder(place).read("lease") == str(made.index(True)).encode()


@pytest.mark.network
def test_a_bucket_that_is_not_there_and_rights_that_have_gone(s3: S3) -> None:
    absent = open_folder("s3a://no-such-bucket/checkpoints")
    assert absent.names() == []
    for attempt in (lambda: absent.write("one", b"1"), lambda: absent.create("one", b"1")):
        with pytest.raises(FileNotFoundError, match="bucket does not exist"):
            attempt()
    folder = open_folder(s3.place())
    folder.write("one", b"1")
    with s3.without_rights():
        for refused in (folder.names, lambda: folder.read("one"), lambda: folder.write("one", b"2")):
            with pytest.raises(PermissionError):
                refused()
    assert folder.read("one") == b"1"


@pytest.mark.network
def test_credentials_that_expire_are_told_and_new_ones_taken(s3: S3) -> None:
    first = s3.credentials()
    with s3.logged_in(first):
        folder = open_folder(s3.place())
        folder.write("one", b"1")
        s3.expire(first)
        for refused in (
            folder.names,
            lambda: folder.read("one"),
            lambda: folder.size("one"),
            lambda: folder.write("one", b"2"),
            lambda: folder.create("two", b"2"),
            lambda: folder.remove("one"),
        ):
            with pytest.raises(PermissionError) as caught:
                refused()
            said = advice(str(caught.value), "Ask for rights.")
            assert said == f"The credentials have expired. {NEW_CREDENTIALS}"
    with s3.logged_in(s3.credentials()):
        folder.create("two", b"2")
        assert (sorted(folder.names()), folder.read("one")) == (["one", "two"], b"1")
    assert advice("Access Denied", "Ask for rights.") == "Ask for rights."
