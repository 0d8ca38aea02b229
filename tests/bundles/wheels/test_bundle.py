"""The wheel: what is in it, that tools take it, and that the same inputs give the same bytes."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from base64 import urlsafe_b64encode
from configparser import ConfigParser
from dataclasses import replace
from hashlib import sha256
from io import BytesIO, StringIO
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile

import pytest

from gem_bundle.errors import GemError
from gem_bundler.bundle.manifest import check_contents, parse
from gem_bundler.wheels.bundle import Wheel, base_version, build_wheel, distribution_name
from tests.bundles.golden_wheels import GOLDEN, KINDS, make, written
from tests.bundles.making import CLEAN, DELTA, JOBS, PLUGGY, TICKS, built, collected, draft, write_files

ROOT = Path(__file__).parents[3]


def names(wheel: Wheel) -> list[str]:
    with ZipFile(BytesIO(wheel.data)) as archive:
        return archive.namelist()


def member(wheel: Wheel, end: str) -> bytes:
    with ZipFile(BytesIO(wheel.data)) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(end))
        return archive.read(name)


@pytest.fixture
def ticks(tmp_path: Path) -> Path:
    return write_files(tmp_path, {"ticks.yaml": CLEAN, "jobs.py": JOBS})


# Golden trees


@pytest.mark.parametrize("kind", list(KINDS))
def test_wheels_are_as_they_are_written_down(kind: str) -> None:
    assert written(make(kind)) == (GOLDEN / f"{kind}.txt").read_text(encoding="utf-8")


def test_nothing_else_is_written_down() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == KINDS.keys()


# Layout


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_record_has_every_file_with_its_hash(kind: str) -> None:
    wheel = make(kind)
    rows = list(csv.reader(StringIO(member(wheel, "/RECORD").decode())))

    assert sorted(row[0] for row in rows) == sorted(names(wheel))
    assert rows[-1][1:] == ["", ""]
    with ZipFile(BytesIO(wheel.data)) as archive:
        for path, digest, size in rows[:-1]:
            data = archive.read(path)
            assert int(size) == len(data)
            assert digest == "sha256=" + urlsafe_b64encode(sha256(data).digest()).rstrip(b"=").decode()


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_zip_has_no_dates_no_compression_and_no_modes_of_the_machine(kind: str) -> None:
    with ZipFile(BytesIO(make(kind).data)) as archive:
        for info in archive.infolist():
            assert info.date_time == (1980, 1, 1, 0, 0, 0)
            assert info.compress_type == ZIP_STORED
            assert info.external_attr >> 16 == 0o100644
            assert info.create_system == 3
            assert info.extra == b""


def test_the_manifest_inside_has_what_the_start_needs(ticks: Path) -> None:
    wheel = built(ticks)
    manifest = parse(member(wheel, "ticks_bundle/bundle.json"))

    assert manifest == wheel.manifest
    assert manifest.wheel == wheel.name
    assert manifest.archive == wheel.name.replace("-py3-none-any.whl", ".zip")
    with ZipFile(BytesIO(wheel.data)) as archive:
        there = set(archive.namelist())

        def data(path: str) -> bytes | None:
            return archive.read(path) if path in there else None

        assert check_contents(manifest, data) == []
        listed = {file.path for file in manifest.contents}
        assert {n for n in there if ".dist-info/" not in n} - listed == {"ticks_bundle/bundle.json"}


def test_the_bill_of_materials_beside_the_wheel_is_the_one_inside(ticks: Path) -> None:
    wheel = built(ticks, distributions=(PLUGGY,), jars=(DELTA,))

    assert member(wheel, ".dist-info/sboms/ticks.cdx.json") == wheel.sbom


def test_entry_points_can_be_read(tmp_path: Path) -> None:
    points = ConfigParser()
    points.read_string(member(make("gem_of_the_project"), "/entry_points.txt").decode())

    assert dict(points["console_scripts"]) == {
        "ticks": "ticks_bundle.__main__:main",
        "ticks_bundle": "ticks_bundle.__main__:task",
    }
    assert dict(points["gem_bundle"]) == {"sheep": "acme_sheep"}


# Version and name


def test_the_version_comes_from_the_contents(ticks: Path) -> None:
    first = built(ticks)

    assert first.manifest.version.startswith("0.1.0+g")
    assert len(first.manifest.version) == len("0.1.0+g") + 12
    assert built(ticks) == first


def changed(folder: Path, what: str) -> Wheel:
    if what == "a comment in the pipeline file":
        (folder / "ticks.yaml").write_text(CLEAN + "# more\n", encoding="utf-8")
    elif what == "a module":
        (folder / "jobs.py").write_text(JOBS + "\n", encoding="utf-8")
    elif what == "a dependency":
        return built(folder, distributions=(PLUGGY,))
    elif what == "a dependency's file":
        return built(folder, distributions=(replace(PLUGGY, sha256="dd" * 32),))
    elif what == "a jar":
        return built(folder, jars=(DELTA,))
    elif what == "the runtime":
        start = draft(folder)
        return built(folder, runtime=replace(start.runtime, python="3.12"))
    elif what == "the job":
        return built(folder, job={"schedule": "daily"})
    return built(folder)


CHANGES = (
    "a comment in the pipeline file",
    "a module",
    "a dependency",
    "a dependency's file",
    "a jar",
    "the runtime",
    "the job",
)


def test_every_changed_input_gives_another_version(tmp_path: Path) -> None:
    found = {}
    for number, what in enumerate(("nothing", *CHANGES)):
        folder = write_files(tmp_path / str(number), {"ticks.yaml": CLEAN, "jobs.py": JOBS})
        found[changed(folder, what).manifest.version] = what

    assert sorted(found.values()) == sorted(("nothing", *CHANGES))


@pytest.mark.parametrize(
    ("pipeline", "distribution"), [("ticks", "ticks"), ("a_b", "a-b"), ("a__b_1", "a-b-1"), ("x", "x")]
)
def test_distributions_are_called_like_pipelines(pipeline: str, distribution: str) -> None:
    assert distribution_name(pipeline) == distribution


@pytest.mark.parametrize("pipeline", ["ticks_", "a__", "pyspark", "gem_bundle"])
def test_a_name_that_no_wheel_can_have_is_refused(pipeline: str) -> None:
    with pytest.raises(GemError) as caught:
        distribution_name(pipeline)

    assert caught.value.code == "GB625"
    assert caught.value.hint


def test_a_bundle_can_t_be_called_like_what_it_needs(tmp_path: Path) -> None:
    write_files(tmp_path, {"ticks.yaml": TICKS.replace("pipeline: ticks", "pipeline: pluggy")})

    with pytest.raises(GemError) as caught:
        built(tmp_path, distributions=(PLUGGY,))

    assert caught.value.code == "GB625"
    assert "`pluggy`" in caught.value.message


@pytest.mark.parametrize(
    ("written", "version"), [("1.4.0", "1.4.0"), ("1.4.0-rc1", "1.4.0rc1"), ("2024.01.05", "2024.1.5")]
)
def test_versions_are_written_as_wheels_have_them(written: str, version: str) -> None:
    assert base_version(written) == version


@pytest.mark.parametrize(
    ("version", "said"), [("1.4-final-2", "can't be"), ("1.4.0+abc", "has a `+`"), ("1..2", "can't be")]
)
def test_a_version_that_no_wheel_can_have_is_refused(version: str, said: str) -> None:
    with pytest.raises(GemError) as caught:
        base_version(version)

    assert caught.value.code == "GB626"
    assert said in caught.value.message
    assert caught.value.hint


# Tools


def run(*words: str | Path, cwd: Path | None = None) -> str:
    result = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, cwd=cwd, env=plain()
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


def plain() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PIP_", "GEM_BUNDLE"))}
    return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INDEX": "1"}


def put(wheel: Wheel, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / wheel.name
    file.write_bytes(wheel.data)
    return file


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with nothing in it."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    return folder / "bin" / "python"


@pytest.mark.programs
def test_pip_installs_it_with_what_it_requires(tmp_path: Path, environment: Path) -> None:
    library = write_files(
        tmp_path / "library", {"lib.yaml": TICKS.replace("pipeline: ticks", "pipeline: tools")}
    )
    tools = built(library, "lib.yaml")
    project = write_files(tmp_path / "project", {"ticks.yaml": CLEAN, "jobs.py": JOBS})
    put(tools, tmp_path / "wheels")
    wheel = built(project, requires=(f"tools=={tools.manifest.version}",))
    pip = (sys.executable, "-m", "pip", "--python", environment)

    run(*pip, "install", "--find-links", tmp_path / "wheels", put(wheel, tmp_path / "wheels"))

    assert "No broken requirements" in run(*pip, "check")
    assert f"ticks=={wheel.manifest.version}" in run(*pip, "list", "--format", "freeze")
    assert (environment.parent / "ticks").is_file()
    probe = "import jobs, ticks_bundle.__main__ as m; print(jobs.clean.__name__, m.main.__name__)"
    assert run(environment, "-c", probe).split() == ["clean", "main"]


@pytest.mark.programs
@pytest.mark.parametrize("kind", list(KINDS))
def test_wheel_unpacks_and_packs_it(kind: str, tmp_path: Path) -> None:
    wheel = make(kind)
    file = put(wheel, tmp_path)

    run(sys.executable, "-m", "wheel", "unpack", file, "-d", tmp_path / "unpacked")

    (folder,) = (tmp_path / "unpacked").iterdir()
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert there == set(names(wheel))


@pytest.mark.programs
@pytest.mark.parametrize("kind", list(KINDS))
def test_check_wheel_contents_finds_nothing_wrong(kind: str, tmp_path: Path) -> None:
    wheel = make(kind)
    tops = {name.partition("/")[0] for name in names(wheel) if ".dist-info/" not in name}

    # The user's modules are imported by their own names, so they lie beside the bundle's package (W009).
    found = run(
        Path(sys.executable).with_name("check-wheel-contents"),
        "--no-config",
        "--toplevel",
        ",".join(sorted(tops)),
        *(("--ignore", "W009") if len(tops) > 1 else ()),
        put(wheel, tmp_path),
    )

    assert found.endswith(": OK\n")


@pytest.mark.programs
def test_modules_can_be_imported_from_the_zip(tmp_path: Path) -> None:
    archive = tmp_path / "ticks.zip"
    archive.write_bytes(make("package").data)
    probe = (
        f"import sys; sys.path.insert(0, {str(archive)!r}); import acme.deep.rules, acme.jobs, ticks_bundle\n"
        "from importlib.resources import files\n"
        "from importlib.metadata import entry_points\n"
        "print(files('acme').joinpath('words.json').read_text().strip())\n"
        "print(entry_points(group='console_scripts', name='ticks')['ticks'].value)"
    )

    assert run(sys.executable, "-c", probe).split() == ["{}", "ticks_bundle.__main__:main"]


# Reproducible

BUILD = """\
import os, sys
from pathlib import Path
os.umask(int(sys.argv[2], 8))
from tests.bundles.making import ACME, DELTA, PLUGGY, built
wheel = built(
    Path(sys.argv[1]), "ticks.yaml", "more/tocks.yaml",
    distributions=(ACME, PLUGGY), jars=(DELTA,), requires=("gem-bundle==0.1.0", "acme-gems==1.0+editable"),
)
sys.stdout.buffer.write(wheel.name.encode() + b"\\0" + wheel.data + wheel.sbom)
"""


def build_elsewhere(folder: Path, umask: str, cwd: Path, **variables: str) -> bytes:
    result = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder), umask],
        capture_output=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
    )
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout


@pytest.mark.programs
def test_the_same_inputs_give_the_same_bytes_everywhere(tmp_path: Path) -> None:
    files = {
        "ticks.yaml": CLEAN.replace("jobs:", "acme.jobs:"),
        "more/tocks.yaml": CLEAN.replace("pipeline: ticks", "pipeline: tocks").replace("jobs:", "tock:"),
        "more/tock.py": JOBS,
        "acme/__init__.py": "",
        "acme/jobs.py": "# Zählerstände\n" + JOBS,
        "acme/z.txt": "z",
        "acme/a.txt": "a",
    }
    here = write_files(tmp_path / "here", files)
    first = build_elsewhere(
        here, "022", here, TZ="UTC", LC_ALL="C.UTF-8", PYTHONHASHSEED="0", SOURCE_DATE_EPOCH="0"
    )
    there = write_files(tmp_path / "over there" / "ü", dict(reversed(files.items())))
    for file in there.rglob("*"):
        os.utime(file, (1_000_000_000, 2_000_000_000))
        file.chmod(0o777)
    second = build_elsewhere(
        there,
        "077",
        tmp_path,
        TZ="Pacific/Kiritimati",
        LC_ALL="C",
        PYTHONHASHSEED="4711",
        PYTHONUTF8="0",
        PYTHONOPTIMIZE="2",
    )

    assert first.startswith(b"ticks-0.1.0+g")
    assert first == second
    assert str(tmp_path).encode() not in first


@pytest.mark.programs
def test_a_pycache_changes_nothing(ticks: Path) -> None:
    before = built(ticks)
    run(sys.executable, "-m", "compileall", "-q", ticks)

    assert (ticks / "__pycache__").is_dir()
    assert built(ticks) == before


def test_the_order_of_what_is_given_to_the_build_changes_nothing(ticks: Path) -> None:
    contents = collected(ticks)
    turned = replace(contents, files=dict(reversed(contents.files.items())))

    assert build_wheel(draft(ticks), turned) == build_wheel(draft(ticks), contents)


def test_the_wheel_of_an_example_is_small() -> None:
    many = range(20)
    distributions = tuple(replace(PLUGGY, name=f"pluggy-{n}", requires=("pluggy-1",)) for n in many)
    jars = tuple(replace(DELTA, coordinate=f"io.delta:delta-spark_{n}:4.4.0") for n in many)
    wheel = built(ROOT / "examples" / "flights", "flights.yaml", distributions=distributions, jars=jars)

    assert len(wheel.data) < 50_000


def test_the_tools_that_these_tests_need_are_there() -> None:
    assert shutil.which("check-wheel-contents", path=str(Path(sys.executable).parent))
