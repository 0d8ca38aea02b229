"""What a bundle is built for, in pip's words."""

from __future__ import annotations

import pytest

from gem_bundle.errors import GemError
from gem_bundler.bundle.target_platform import Target, building_python


def test_the_default_platform_takes_all_older_wheels() -> None:
    tags = Target("3.11").tags

    assert tags[:3] == ("manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux_2_16_x86_64")
    assert tags[-2:] == ("manylinux_2_5_x86_64", "manylinux1_x86_64")
    assert "manylinux2010_x86_64" in tags
    assert len(tags) == 13 + 3


@pytest.mark.parametrize(
    ("platform", "first", "last"),
    [
        ("manylinux_2_28_x86_64", "manylinux_2_28_x86_64", "manylinux1_x86_64"),
        ("manylinux2014_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
        ("manylinux1_i686", "manylinux_2_5_i686", "manylinux1_i686"),
        ("musllinux_1_2_x86_64", "musllinux_1_2_x86_64", "musllinux_1_0_x86_64"),
        ("macosx_14_0_arm64", "macosx_14_0_arm64", "macosx_14_0_arm64"),
        ("win_amd64", "win_amd64", "win_amd64"),
    ],
)
def test_tags_go_from_the_newest_to_the_oldest(platform: str, first: str, last: str) -> None:
    tags = Target("3.11", platform).tags

    assert (tags[0], tags[-1]) == (first, last)
    assert len(set(tags)) == len(tags)
    assert platform in tags


@pytest.mark.parametrize(
    ("platform", "machine", "system", "name"),
    [
        ("manylinux2014_x86_64", "x86_64", "Linux", "linux"),
        ("manylinux_2_28_aarch64", "aarch64", "Linux", "linux"),
        ("musllinux_1_2_x86_64", "x86_64", "Linux", "linux"),
        ("macosx_14_0_arm64", "arm64", "Darwin", "darwin"),
        ("win_amd64", "AMD64", "Windows", "win32"),
        ("win32", "X86", "Windows", "win32"),
    ],
)
def test_markers_are_those_of_the_target(platform: str, machine: str, system: str, name: str) -> None:
    markers = Target("3.12", platform).markers()

    assert markers["platform_machine"] == machine
    assert (markers["platform_system"], markers["sys_platform"]) == (system, name)
    assert markers["python_version"] == "3.12"


def test_every_marker_has_a_value() -> None:
    from packaging.markers import default_environment

    assert Target("3.11").markers().keys() == default_environment().keys()


@pytest.mark.parametrize("platform", ["linux", "linux_x86_64", "x86_64", "manylinux2015_x86_64", "any", ""])
def test_an_unknown_platform_is_refused(platform: str) -> None:
    with pytest.raises(GemError, match="is not a platform to build for") as caught:
        Target("3.11", platform)

    assert caught.value.code == "GB641"
    assert "manylinux2014_x86_64" in caught.value.hint


@pytest.mark.parametrize("python", ["3", "2.7", "3.11.4", "cp311", ""])
def test_an_unknown_python_is_refused(python: str) -> None:
    with pytest.raises(GemError, match="is not a version of Python to build for") as caught:
        Target(python)

    assert caught.value.code == "GB641"


def test_pip_is_told_everything_that_it_would_else_take_from_its_own_python() -> None:
    options = Target("3.12", "manylinux2014_aarch64").pip_options()

    assert options[:4] == [
        "--only-binary=:all:",
        "--implementation=cp",
        "--python-version=3.12",
        "--abi=cp312",
    ]
    assert options[4:] == ["--platform=manylinux_2_17_aarch64", "--platform=manylinux2014_aarch64"]


def test_the_running_python_is_a_target() -> None:
    assert Target(building_python()).abi.startswith("cp3")


@pytest.mark.parametrize(
    ("tag", "runs"),
    [
        ("py3-none-any", True),
        ("py2.py3-none-any", True),
        ("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", True),
        ("cp38-abi3-manylinux_2_12_x86_64", True),
        ("cp312-cp312-manylinux2014_x86_64", False),
        ("cp311-cp311-manylinux_2_28_x86_64", False),
        ("cp311-cp311-linux_x86_64", False),
        ("cp311-cp311-win_amd64", False),
    ],
)
def test_which_wheels_run(tag: str, runs: bool) -> None:
    assert Target("3.11").runs(f"acme_gems-1.0+editable-{tag}.whl") is runs
