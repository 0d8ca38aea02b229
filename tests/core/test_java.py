"""Which Java is taken, and what is said when none will do."""

import os
from pathlib import Path

import pytest

from gem_bundle.errors import GemError
from gem_bundle.run.java import Java, find_java, major_version


def java(home: Path, says: str | None, release: str | None = None) -> Path:
    """A Java installation: its program prints a version, or fails, and counts how often it ran."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    answer = f"echo 'openjdk version \"{says}\" 2025-04-15' >&2" if says else "exit 1"
    program.write_text(f"#!/bin/sh\necho x >> {home}/starts\n{answer}\n")
    program.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{release}"\n')
    return program


def test_the_java_of_this_machine_runs_spark() -> None:
    found = find_java()
    assert found.path.is_file()
    assert found.major >= 17


@pytest.mark.programs
def test_java_home_comes_before_the_search_path(tmp_path: Path) -> None:
    home = java(tmp_path / "home", "21.0.1")
    other = java(tmp_path / "other", "17.0.15")
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(other.parent)}
    assert find_java(environment) == Java(home, "21.0.1")
    assert find_java({"PATH": str(other.parent)}) == Java(other, "17.0.15")


@pytest.mark.programs
@pytest.mark.parametrize("home", ["1.8.0_292", None, "missing"])
def test_a_java_home_that_will_not_do_is_passed_over(tmp_path: Path, home: str | None) -> None:
    if home != "missing":
        java(tmp_path / "home", home)
    good = java(tmp_path / "good", "17.0.15")
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(good.parent)}
    assert find_java(environment).path == good


def test_the_release_file_saves_starting_it(tmp_path: Path) -> None:
    program = java(tmp_path / "home", "1.8.0", release="17.0.15")
    assert find_java({"PATH": str(program.parent)}).version == "17.0.15"
    assert not (tmp_path / "home" / "starts").exists()


def test_a_link_on_the_search_path_finds_its_release_file(tmp_path: Path) -> None:
    program = java(tmp_path / "home", None, release="21")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(program)
    assert find_java({"PATH": str(tmp_path / "bin")}).version == "21"


def test_none_says_where_it_looked_and_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(GemError) as caught:
        find_java({"PATH": str(tmp_path)})
    assert caught.value.code == "GB501"
    assert caught.value.message == (
        "Spark needs Java 17 or newer, and there is none (JAVA_HOME is not set; PATH: no `java`)"
    )
    assert "openjdk-17" in caught.value.hint


@pytest.mark.programs
def test_those_that_are_too_old_are_named(tmp_path: Path) -> None:
    java(tmp_path / "eight", "1.8.0_292")
    program = java(tmp_path / "eleven", "11.0.2")
    with pytest.raises(GemError) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "eight"), "PATH": str(program.parent)})
    eight = tmp_path / "eight"
    assert caught.value.message == (
        "Spark needs Java 17 or newer, and there is none "
        f"(JAVA_HOME={eight}: `{eight}/bin/java` is Java 1.8.0_292; "
        f"PATH: `{program}` is Java 11.0.2)"
    )


def test_a_file_called_java_in_the_current_folder_is_no_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "java").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GemError, match="PATH: no `java`"):
        find_java({"PATH": os.fspath(tmp_path / "empty")})


@pytest.mark.parametrize(
    ("version", "major"),
    [("17.0.15", 17), ("21", 21), ("25-ea", 25), ("1.8.0_292", 8), ("?", 0)],
)
def test_the_feature_release_of_a_version(version: str, major: int) -> None:
    assert major_version(version) == major
