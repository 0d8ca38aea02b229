"""Packing what is installed here and comes from no index."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import pytest

from gem_bundle.errors import GemError
from gem_bundler.bundle.target_platform import Target
from gem_bundler.dependencies.installed import closure, installed, origin, pack, version
from gem_bundler.wheels.files import read_wheel
from tests.bundles.installing import Made

ACME = Made(
    "acme-gems",
    "1.2",
    requires=("acme-base>=1",),
    files={
        "acme_gems/__init__.py": b"",
        "acme_gems/inner/deep.py": b"x = 1\n",
        "acme_gems/py.typed": b"",
        "acme_tools.py": b"",
    },
    entry_points="[gem_bundle]\nacme = acme_gems\n",
)
ELSEWHERE: dict[str, object] = {"url": "https://example.com/acme.git", "vcs_info": {"vcs": "git"}}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


def on_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the ``.pth`` file does when Python starts."""
    monkeypatch.syspath_prepend(folder)


def names(content: bytes) -> list[str]:
    with ZipFile(io.BytesIO(content)) as wheel:
        assert wheel.testzip() is None
        return wheel.namelist()


@pytest.mark.parametrize(
    ("url", "installer", "expected"),
    [
        (None, "pip", "index"),
        (ELSEWHERE, "pip", "local"),
        ({"url": "file:///x.whl", "archive_info": {}}, "pip", "local"),
        ({"url": "file:///x", "dir_info": {}}, "pip", "local"),
        ({"url": "file:///x", "dir_info": {"editable": True}}, "uv", "editable"),
        ({"url": "file:///home/conda/work", "dir_info": {}}, "conda", "index"),
    ],
)
def test_where_a_distribution_comes_from(
    url: dict[str, object] | None, installer: str, expected: str, site: Path
) -> None:
    ACME.install(site, url)
    (site / ACME.info / "INSTALLER").write_text(installer)

    assert origin(distribution("acme-gems")) == expected


def test_a_damaged_note_of_where_it_comes_from_says_nothing(site: Path) -> None:
    ACME.install(site, ELSEWHERE)
    (site / ACME.info / "direct_url.json").write_text("[1")

    assert origin(distribution("acme-gems")) == "index"


@pytest.mark.parametrize(
    ("plain", "marked"),
    [("1.2", "1.2+editable"), ("1.2+cu", "1.2+cu.editable"), ("1.2.DEV0", "1.2.dev0+editable")],
)
def test_the_version_of_an_editable_one_is_marked(
    plain: str, marked: str, site: Path, tmp_path: Path
) -> None:
    made = Made("acme-gems", plain)
    made.develop(site, tmp_path / "project")

    assert version(distribution("acme-gems")) == marked


def test_other_versions_stay(site: Path) -> None:
    ACME.install(site, ELSEWHERE)

    assert version(distribution("acme-gems")) == "1.2"


def test_metadata_beside_sources_is_not_what_is_installed(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ACME.install(site, {"url": "file:///x", "dir_info": {"editable": True}})
    sources = tmp_path / "sources"
    (sources / "acme_gems.egg-info").mkdir(parents=True)
    (sources / "acme_gems.egg-info" / "PKG-INFO").write_text(
        "Metadata-Version: 2.1\nName: acme-gems\nVersion: 0.9\n"
    )
    on_path(sources, monkeypatch)
    assert distribution("acme-gems").version == "0.9"

    assert version(installed("acme-gems")) == "1.2+editable"
    assert list(closure(["acme-gems"], Target("3.11", "manylinux2014_x86_64").markers())) == ["acme-gems"]
    assert origin(installed("acme-gems")) == "editable"


def test_what_is_not_installed_is_asked_for() -> None:
    with pytest.raises(GemError, match="`acme-gems` isn't installed here") as caught:
        installed("acme-gems")

    assert caught.value.code == "GB648"
    assert "pip install acme-gems" in caught.value.hint


def test_everything_that_is_needed_is_found_once(site: Path) -> None:
    Made(
        "acme-gems",
        requires=("Acme.Base[x]>=1; python_version > '3'", "nowhere", "acme-old; python_version < '3'"),
        extras=("dev",),
    ).install(site)
    Made("acme-base", requires=("acme-gems", "acme-x; extra == 'x'", "acme-y; extra == 'y'")).install(site)
    for name in ("acme-old", "acme-x", "acme-y"):
        Made(name).install(site)

    assert list(closure(["Acme_Gems>=1"], Target("3.11").markers())) == ["acme-base", "acme-gems", "acme-x"]


def test_an_editable_distribution_is_packed_from_its_sources(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    ACME.develop(site, project)
    on_path(project, monkeypatch)
    for junk in ("__pycache__/__init__.cpython-311.pyc", ".DS_Store", ".cache/x", "old.pyc"):
        (project / "acme_gems" / junk).parent.mkdir(exist_ok=True)
        (project / "acme_gems" / junk).write_bytes(b"junk")
    (project / "tests").mkdir()
    (project / "tests" / "__init__.py").write_bytes(b"")

    packed = pack(distribution("acme-gems"))

    assert packed.editable
    assert packed.file == "acme_gems-1.2+editable-py3-none-any.whl"
    assert packed.facts.version == "1.2+editable"
    assert packed.facts.modules == ("acme_gems", "acme_tools")
    assert packed.facts.requires == ("acme-base>=1",)
    assert names(packed.content) == [
        "acme_gems/__init__.py",
        "acme_gems/inner/deep.py",
        "acme_gems/py.typed",
        "acme_tools.py",
        "acme_gems-1.2+editable.dist-info/METADATA",
        "acme_gems-1.2+editable.dist-info/RECORD",
        "acme_gems-1.2+editable.dist-info/WHEEL",
        "acme_gems-1.2+editable.dist-info/entry_points.txt",
        "acme_gems-1.2+editable.dist-info/top_level.txt",
    ]


def test_of_a_folder_of_sources_everything_is_packed(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    ACME.develop(site, project, top_level=False, source="src")
    on_path(project / "src", monkeypatch)

    assert pack(distribution("acme-gems")).facts.modules == ("acme_gems", "acme_tools")


def test_of_the_project_s_own_folder_only_what_is_named_is_packed(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(
        "acme-gems",
        files={
            "acme_gems/__init__.py": b"",
            "other/__init__.py": b"",
            "tests/__init__.py": b"",
            "noxfile.py": b"",
        },
        entry_points="[gem_bundle]\nother = other\nstranger = json\n",
    )
    project = tmp_path / "project"
    made.develop(site, project, top_level=False)
    on_path(project, monkeypatch)

    assert pack(distribution("acme-gems")).facts.modules == ("acme_gems", "other")


def test_an_editable_distribution_without_sources_is_refused(site: Path, tmp_path: Path) -> None:
    ACME.develop(site, tmp_path / "project")

    with pytest.raises(GemError, match="can't be found, though it is installed in editable mode") as caught:
        pack(distribution("acme-gems"))

    assert caught.value.code == "GB648"


def test_native_parts_of_an_editable_distribution_are_refused(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made("acme-gems", files={"acme_gems/__init__.py": b"", "acme_gems/_fast.abi3.so": b"\x7fELF"})
    made.develop(site, tmp_path / "project")
    on_path(tmp_path / "project", monkeypatch)

    with pytest.raises(GemError, match=r"has the native part `acme_gems/_fast.abi3.so`") as caught:
        pack(distribution("acme-gems"))

    assert caught.value.code == "GB648"


def test_a_distribution_from_elsewhere_is_packed_from_its_record(site: Path) -> None:
    ACME.install(site, ELSEWHERE)
    (site / "acme_gems" / "unlisted.py").write_bytes(b"")

    packed = pack(distribution("acme-gems"))

    assert not packed.editable
    assert packed.file == "acme_gems-1.2-py3-none-any.whl"
    assert names(packed.content) == [
        "acme_gems/__init__.py",
        "acme_gems/inner/deep.py",
        "acme_gems/py.typed",
        "acme_tools.py",
        "acme_gems-1.2.dist-info/METADATA",
        "acme_gems-1.2.dist-info/RECORD",
        "acme_gems-1.2.dist-info/WHEEL",
        "acme_gems-1.2.dist-info/entry_points.txt",
    ]


def test_native_parts_from_elsewhere_keep_their_tags(site: Path) -> None:
    tag = "cp311-abi3-manylinux_2_17_x86_64"
    made = Made("acme-gems", tag=tag, files={"acme_gems/_fast.abi3.so": b"\x7fELF"})
    made.install(site, ELSEWHERE)
    wheel = site / made.info / "WHEEL"
    wheel.write_text(wheel.read_text() + "Tag: cp311-abi3-manylinux2014_x86_64\n")

    packed = pack(distribution("acme-gems"))

    assert packed.file == "acme_gems-1.0-cp311-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
    with ZipFile(io.BytesIO(packed.content)) as found:
        assert "Root-Is-Purelib: false" in found.read(f"{made.info}/WHEEL").decode()


def test_a_distribution_without_files_is_refused(site: Path) -> None:
    ACME.install(site, ELSEWHERE)
    (site / ACME.info / "RECORD").unlink()

    with pytest.raises(GemError, match="the files of `acme-gems` can't be found") as caught:
        pack(distribution("acme-gems"))

    assert caught.value.code == "GB648"


def test_the_same_sources_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    before = os.umask(0o022)
    try:
        for number, umask in enumerate((0o022, 0o077)):
            os.umask(umask)
            site = tmp_path / f"{number}" / "site"
            project = tmp_path / f"{number}" / "project"
            site.mkdir(parents=True)
            with monkeypatch.context() as patch:
                patch.syspath_prepend(site)
                ACME.develop(site, project)
                on_path(project, patch)
                for file in project.rglob("*.py"):
                    os.utime(file, (number * 1e6, number * 1e6))
                found.add(pack(distribution("acme-gems")).content)
    finally:
        os.umask(before)

    assert len(found) == 1


@pytest.mark.programs
def test_pip_installs_what_was_packed_and_finds_the_same_files(tmp_path: Path) -> None:
    packed = pack(distribution("pluggy"))
    (tmp_path / packed.file).write_bytes(packed.content)
    target = tmp_path / "target"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--no-index", f"--target={target}", tmp_path / packed.file], check=True)

    original = Path(str(distribution("pluggy").locate_file("pluggy")))
    for file in original.rglob("*.py"):
        assert (target / "pluggy" / file.relative_to(original)).read_bytes() == file.read_bytes()
    assert read_wheel(tmp_path / packed.file) == packed.facts
    assert packed.facts.name == "pluggy"
    assert packed.facts.licence == "MIT"


def test_the_runtime_is_packed_with_its_gems_and_its_entry_points() -> None:
    packed = pack(installed("gem-bundle"))

    assert {"gem_bundle", "gem_bundler", "gem_kafka", "gem_delta"} <= set(packed.facts.modules)
    assert "tests" not in packed.facts.modules
    listed = names(packed.content)
    assert "gem_bundle/py.typed" in listed
    assert f"gem_bundle-{packed.facts.version}.dist-info/entry_points.txt" in listed
