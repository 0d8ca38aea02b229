"""The archive of dependencies: what is in it, and that its bytes are always the same."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import zlib
from base64 import urlsafe_b64encode
from hashlib import sha256
from importlib.metadata import distribution
from typing import TYPE_CHECKING
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import pytest

from gem_bundle.errors import GemError
from gem_bundler.bundle.model import LockedDistribution
from gem_bundler.dependencies.archive import write_archive
from gem_bundler.dependencies.installed import pack
from gem_bundler.dependencies.lock import DepsLock, Question
from gem_bundler.wheels.files import open_wheel, read_wheel
from tests.bundles.installing import Made

if TYPE_CHECKING:
    from pathlib import Path

QUESTION = Question((), "3.11", "manylinux2014_x86_64", "4.2.0")
LONG = b"".join(b"value_%d = %d\n" % (n, n * n) for n in range(20_000))


def compressed(path: Path) -> Path:
    """The same wheel with its files compressed, as those of an index are, and with what pip leaves aside."""
    with ZipFile(path) as wheel:
        files = {name: wheel.read(name) for name in wheel.namelist()}
    with ZipFile(path, "w", ZIP_DEFLATED) as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
    return path


def lock_of(*wheels: Path) -> tuple[DepsLock, dict[str, Path]]:
    facts = [(path, read_wheel(path)) for path in wheels]
    locked = tuple(LockedDistribution(each.name, each.version, path.name, "") for path, each in facts)
    return DepsLock(QUESTION, locked), {path.name: path for path in wheels}


def archived(folder: Path, *wheels: Path) -> bytes:
    path = folder / "deps.tar.gz"
    write_archive(*lock_of(*wheels), path)
    return path.read_bytes()


def unpacked(content: bytes) -> dict[str, bytes]:
    found = {}
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        for member in archive:
            file = archive.extractfile(member)
            assert file is not None
            found[member.name] = file.read()
    return found


def files_of(folder: Path) -> dict[str, bytes]:
    return {f.relative_to(folder).as_posix(): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    made = Made(
        "acme-gems",
        files={
            "acme_gems/__init__.py": b"",
            "acme_gems/long.py": LONG,
            "acme_gems/short.py": b"x = 1\n",
            f"acme_gems/{'n' * 120}.py": LONG[:5000],
            "acme_gems/ünicode.txt": b"y" * 513,
            "acme_gems/__pycache__/long.cpython-311.pyc": b"compiled",
            "acme_gems-1.0.data/purelib/acme_more.py": b"more = 1\n" * 100,
            "acme_gems-1.0.data/platlib/acme_native.so": b"\x7fELF" * 300,
            "acme_gems-1.0.data/data/share/acme/table.csv": b"a,b\n" * 400,
            "acme_gems-1.0.data/scripts/acme": b"#!python\n",
            "acme_gems-1.0.data/headers/acme.h": b"int x;\n",
        },
        entry_points="[gem_bundle]\nacme = acme_gems\n",
    )
    return compressed(made.publish(tmp_path / "index"))


def test_the_archive_has_what_is_installed(tmp_path: Path, wheel: Path) -> None:
    found = unpacked(archived(tmp_path, wheel))

    assert list(found) == sorted(found)
    assert set(found) == {
        "acme_gems/__init__.py",
        "acme_gems/long.py",
        "acme_gems/short.py",
        f"acme_gems/{'n' * 120}.py",
        "acme_gems/ünicode.txt",
        "acme_more.py",
        "acme_native.so",
        "share/acme/table.csv",
        "acme_gems-1.0.dist-info/METADATA",
        "acme_gems-1.0.dist-info/RECORD",
        "acme_gems-1.0.dist-info/WHEEL",
        "acme_gems-1.0.dist-info/entry_points.txt",
    }
    assert found["acme_gems/long.py"] == LONG


def test_its_record_lists_exactly_its_files(tmp_path: Path, wheel: Path) -> None:
    found = unpacked(archived(tmp_path, wheel))
    lines = found["acme_gems-1.0.dist-info/RECORD"].decode().splitlines()

    assert sorted(line.split(",")[0] for line in lines) == sorted(found)
    digest = urlsafe_b64encode(sha256(LONG).digest()).rstrip(b"=").decode()
    assert f"acme_gems/long.py,sha256={digest},{len(LONG)}" in lines


@pytest.mark.programs
def test_pip_installs_the_same_files(tmp_path: Path) -> None:
    packed = pack(distribution("rich"))
    wheel = tmp_path / packed.file
    wheel.write_bytes(packed.content)
    compressed(wheel)
    target = tmp_path / "target"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--no-index", "--no-compile", f"--target={target}", wheel], check=True)
    by_pip = {
        name: content
        for name, content in files_of(target).items()
        if not name.endswith(("/RECORD", "/INSTALLER", "/REQUESTED", "/direct_url.json"))
        and not name.startswith("bin/")
    }
    ours = unpacked(archived(tmp_path, wheel))

    assert {name: content for name, content in ours.items() if not name.endswith("/RECORD")} == by_pip


@pytest.mark.programs
@pytest.mark.parametrize("command", ["tar -xzf {} -C {}", "gzip -dc {} | tar -xf - -C {}"])
def test_other_programs_unpack_it(command: str, tmp_path: Path, wheel: Path) -> None:
    content = archived(tmp_path, wheel)
    target = tmp_path / "unpacked"
    target.mkdir()
    subprocess.run(command.format(tmp_path / "deps.tar.gz", target), shell=True, check=True)

    assert files_of(target) == unpacked(content)


@pytest.mark.programs
def test_what_is_unpacked_can_be_imported(tmp_path: Path, wheel: Path) -> None:
    archived(tmp_path, wheel)
    target = tmp_path / "deps"
    shutil.unpack_archive(tmp_path / "deps.tar.gz", target, filter="data")
    probe = (
        "from importlib.metadata import entry_points, version; import acme_gems.long, acme_more; "
        "print(version('acme-gems'), acme_gems.long.value_3, entry_points(name='acme')['acme'].value)"
    )
    result = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(target)!r}); {probe}"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert result.stdout == "1.0 9 acme_gems\n"


def test_headers_say_nothing_of_the_machine(tmp_path: Path, wheel: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(archived(tmp_path, wheel))) as archive:
        for member in archive:
            assert (member.uid, member.gid, member.uname, member.gname, member.mtime) == (0, 0, "", "", 0)
            assert member.mode == 0o644
            assert member.isreg()


def test_an_executable_stays_one(tmp_path: Path) -> None:
    path = Made("acme-gems").publish(tmp_path)
    with ZipFile(path, "a") as wheel:
        entry = ZipInfo("acme_gems/helper")
        entry.external_attr = 0o100755 << 16
        wheel.writestr(entry, b"#!/bin/sh\n")
    with tarfile.open(fileobj=io.BytesIO(archived(tmp_path, path))) as archive:
        modes = {member.name: member.mode for member in archive}

    assert modes["acme_gems/helper"] == 0o755
    assert modes["acme_gems/__init__.py"] == 0o644


def test_nothing_is_compressed_anew(tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = archived(tmp_path, wheel)

    def refuse(*_arguments: object, **_options: object) -> None:
        raise AssertionError("what this gives depends on the zlib at hand")

    for name in ("compress", "compressobj"):
        monkeypatch.setattr(zlib, name, refuse)

    assert archived(tmp_path, wheel) == first
    assert len(first) < len(gzip.decompress(first)) / 2


def test_the_bytes_are_pinned(tmp_path: Path) -> None:
    """A change of these hashes gives every bundle that was built before another version."""
    path = Made(
        "acme-gems", files={"acme_gems/__init__.py": LONG, f"acme_gems/{'n' * 120}.py": b"x = 1\n"}
    ).publish(tmp_path)

    assert (
        sha256(path.read_bytes()).hexdigest()
        == "d3cca53bea39dcede512627b6b3959b09a801c944cae2f4e7612113028a6560e"
    )
    assert (
        sha256(archived(tmp_path, path)).hexdigest()
        == "a556eb1edcd392fa24ddbc0d2682dead0a8afb438c26462fe98f4699183a6ba5"
    )


PROBE = """
import os, sys
from pathlib import Path
from gem_bundler.dependencies.archive import write_archive
from gem_bundler.dependencies.lock import DepsLock

os.umask(int(sys.argv[3], 8))
lock = DepsLock.read(Path(sys.argv[1]))
files = {each.file: Path(sys.argv[2]) / each.file for each in lock.distributions}
write_archive(lock, files, Path("deps.tar.gz"))
"""


@pytest.mark.programs
def test_the_environment_does_not_matter(tmp_path: Path, wheel: Path) -> None:
    other = compressed(Made("acme-base").publish(wheel.parent))
    lock, _ = lock_of(other, wheel)
    lock.write(tmp_path / "deps.lock")
    found = set()
    for number, (umask, variables) in enumerate(
        (
            ("022", {"TZ": "UTC", "LC_ALL": "C", "PYTHONHASHSEED": "0"}),
            ("077", {"TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "42"}),
        )
    ):
        folder = tmp_path / f"{number}"
        shutil.copytree(wheel.parent, folder / "wheels")
        for file in (folder / "wheels").iterdir():
            os.utime(file, (number * 1e6, number * 1e6))
        command = [sys.executable, "-c", PROBE, str(tmp_path / "deps.lock"), str(folder / "wheels"), umask]
        subprocess.run(command, cwd=folder, env={**os.environ, **variables}, check=True)
        found.add((folder / "deps.tar.gz").read_bytes())

    assert len(found) == 1


def test_a_file_of_two_distributions_is_told(tmp_path: Path) -> None:
    one = Made("acme-a", files={"shared.py": b"a = 1\n", "same.py": b"x = 1\n"}).publish(tmp_path)
    two = Made("acme-b", files={"shared.py": b"b = 1\n", "same.py": b"x = 1\n"}).publish(tmp_path)
    told: list[str] = []
    write_archive(*lock_of(one, two), tmp_path / "deps.tar.gz", told.append)

    assert told == ["acme-a and acme-b both bring the file shared.py; that of acme-b is taken"]
    assert unpacked((tmp_path / "deps.tar.gz").read_bytes())["shared.py"] == b"b = 1\n"


@pytest.mark.parametrize(
    "name", ["../evil.py", "/etc/evil.py", "acme/../../evil.py", "..\\evil.py", "c:/evil.py"]
)
def test_a_wheel_that_leads_out_of_its_folder_is_refused(name: str, tmp_path: Path) -> None:
    path = Made("acme-gems").publish(tmp_path)
    with ZipFile(path, "a") as wheel:
        wheel.writestr(name, b"")

    with pytest.raises(GemError, match="outside of its folder") as caught:
        open_wheel(path)

    assert caught.value.code == "GB645"


def test_a_damaged_wheel_is_refused(tmp_path: Path) -> None:
    path = Made("acme-gems").publish(tmp_path)
    path.write_bytes(path.read_bytes()[:200])

    with pytest.raises(GemError, match=r"the wheel `acme_gems-1.0-py3-none-any.whl` is damaged") as caught:
        read_wheel(path)

    assert caught.value.code == "GB645"


def test_a_wheel_without_metadata_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "acme_gems-1.0-py3-none-any.whl"
    with ZipFile(path, "w") as wheel:
        wheel.writestr("acme_gems/__init__.py", b"")

    with pytest.raises(GemError, match="it has no metadata"):
        read_wheel(path)
