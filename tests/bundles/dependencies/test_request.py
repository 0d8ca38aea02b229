"""Resolving the dependencies of a bundle, from a folder that stands for an index."""

from __future__ import annotations

import subprocess
import sys
import venv
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.errors import GemError
from gem_bundle.plugins import Origin, load_registry
from gem_bundler.dependencies.archive import write_archive
from gem_bundler.dependencies.lock import DepsLock
from gem_bundler.dependencies.needed import check_thin, exact_requirements, needed_distributions, unpublished
from gem_bundler.dependencies.request import DepsRequest, fetch, resolve
from tests.bundles.installing import Made

if TYPE_CHECKING:
    from pathlib import Path

ELSEWHERE: dict[str, object] = {"url": "https://example.com/acme.git", "vcs_info": {"vcs": "git"}}
NATIVE = "cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64"


class Machine:
    """A machine with a cache, an index and installed distributions."""

    def __init__(self, folder: Path) -> None:
        self.index = folder / "index"
        self.site = folder / "site"
        self.cache = folder / "cache"
        self.lock = folder / "clicks.deps.lock"
        self.told: list[str] = []
        for made in (self.index, self.site):
            made.mkdir()

    def has(self, made: Made) -> None:
        """The distribution is installed from the index."""
        made.publish(self.index)
        made.install(self.site)

    def resolve(self, *distributions: str, update: bool = False, **request: Any) -> DepsLock:
        wanted = DepsRequest(distributions, **{"spark": "4.2.0", "python": "3.11", **request})
        return resolve(wanted, self.lock, update=update, cache=self.cache, report=self.told.append)

    def fetch(self, lock: DepsLock) -> dict[str, Path]:
        return fetch(lock, cache=self.cache, report=self.told.append)

    def refusal(self, *distributions: str, **request: Any) -> GemError:
        with pytest.raises(GemError) as caught:
            self.resolve(*distributions, **request)
        assert not self.lock.exists()
        return caught.value


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(found.index))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.syspath_prepend(found.site)
    return found


@pytest.fixture
def no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks pip fails."""

    def refuse(*_arguments: object, **_options: object) -> None:
        raise AssertionError("pip was asked")

    monkeypatch.setattr(subprocess, "run", refuse)


def versions(lock: DepsLock) -> dict[str, str]:
    return {each.name: each.version for each in lock.distributions}


# Which distributions


def test_the_runtime_is_always_needed() -> None:
    assert needed_distributions([]) == ("gem-bundle",)


def test_an_extra_with_the_name_of_the_plugin_or_of_the_gem_is_taken() -> None:
    registry = load_registry({})
    kafka, delta, stateful, plain = (
        (name, registry.get(kind, name).origin)
        for kind, name in (
            ("source", "kafka"),
            ("target", "delta"),
            ("transform", "stateful"),
            ("transform", "python"),
        )
    )

    assert needed_distributions([delta]) == ("gem-bundle",)
    assert needed_distributions([kafka, delta]) == ("gem-bundle[kafka]",)
    assert needed_distributions([kafka], serve=True) == ("gem-bundle[kafka,serve]",)
    assert needed_distributions([plain]) == ("gem-bundle",)
    assert needed_distributions([plain, stateful]) == ("gem-bundle[stateful]",)


def test_the_distributions_of_others_come_too(machine: Machine) -> None:
    Made("Acme.Gems", extras=("fast", "slow")).install(machine.site)
    gems = [
        ("quick", Origin("fast", "Acme.Gems", "1.0")),
        ("plain", Origin("plain", "Acme.Gems", "1.0")),
        ("x", Origin("x", "gone", "1.0")),
    ]

    assert needed_distributions(gems) == ("acme-gems[fast]", "gem-bundle", "gone")


def test_versions_are_those_that_are_installed(machine: Machine, tmp_path: Path) -> None:
    Made("acme-gems", "1.2").install(machine.site)
    Made("acme-more", "2.0").develop(machine.site, tmp_path / "project")

    assert exact_requirements(["acme-more", "acme-gems[fast]"]) == (
        "acme-gems[fast]==1.2",
        "acme-more==2.0+editable",
    )


def test_a_thin_bundle_warns_of_what_no_index_has(machine: Machine, tmp_path: Path) -> None:
    Made("acme-gems").install(machine.site)
    Made("acme-more").develop(machine.site, tmp_path / "project")
    Made("acme-git").install(machine.site, ELSEWHERE)
    wanted = ["acme-gems", "acme-git", "acme-more[x]"]

    assert unpublished(wanted) == ("acme-git", "acme-more")
    git, more = check_thin(wanted)
    assert (git.code, git.severity) == ("GB649", "warning")
    assert "`acme-git==1.0`, which is installed here from elsewhere than an index" in git.message
    assert "`acme-more==1.0+editable`, which is installed here in editable mode" in more.message


# Resolving


@pytest.mark.programs
def test_what_is_needed_is_locked_with_its_hash(machine: Machine) -> None:
    machine.has(Made("acme-gems", "1.2", requires=("Acme_Base>=1",)))
    machine.has(Made("acme-base", "1.5", tag=NATIVE, files={"acme_base/_fast.so": b"\x7fELF"}))
    machine.has(Made("not-needed"))
    lock = machine.resolve("acme-gems")
    base, gems = lock.distributions

    assert (gems.name, gems.version, gems.requires) == ("acme-gems", "1.2", ("acme-base",))
    assert (gems.file, gems.modules, gems.licence) == (
        "acme_gems-1.2-py3-none-any.whl",
        ("acme_gems",),
        "Apache-2.0",
    )
    assert not gems.packed
    assert base.file == f"acme_base-1.5-{NATIVE}.whl"
    assert DepsLock.read(machine.lock) == lock
    assert machine.told == [
        "Resolving acme-gems==1.2 for Python 3.11 on manylinux2014_x86_64 (kept in the lock)"
    ]
    files = machine.fetch(lock)
    assert {name: path.read_bytes() for name, path in files.items()} == {
        path.name: path.read_bytes() for path in machine.index.iterdir() if "not_needed" not in path.name
    }


@pytest.mark.programs
@pytest.mark.usefixtures("machine")
def test_with_a_lock_and_a_cache_nobody_is_asked(machine: Machine, request: pytest.FixtureRequest) -> None:
    machine.has(Made("acme-gems", requires=("acme-base",)))
    machine.has(Made("acme-base"))
    first = machine.resolve("acme-gems")
    content = machine.lock.read_bytes()
    machine.fetch(first)
    Made("acme-base", "2.0").publish(machine.index)
    request.getfixturevalue("no_pip")
    machine.told.clear()
    again = machine.resolve("acme-gems")

    assert again == first
    assert machine.lock.read_bytes() == content
    assert machine.fetch(again) == machine.fetch(first)
    assert machine.told == []


@pytest.mark.programs
def test_the_lock_is_renewed_when_that_is_asked_for(machine: Machine) -> None:
    machine.has(Made("acme-gems", requires=("acme-base",)))
    Made("acme-base", "1.0").publish(machine.index)
    assert versions(machine.resolve("acme-gems"))["acme-base"] == "1.0"
    Made("acme-base", "2.0").publish(machine.index)

    assert versions(machine.resolve("acme-gems"))["acme-base"] == "1.0"
    assert versions(machine.resolve("acme-gems", update=True))["acme-base"] == "2.0"
    assert versions(DepsLock.read(machine.lock))["acme-base"] == "2.0"


@pytest.mark.programs
def test_the_versions_that_are_installed_here_are_preferred(machine: Machine) -> None:
    machine.has(Made("acme-gems", requires=("acme-base",)))
    machine.has(Made("acme-base", "1.0"))
    Made("acme-base", "2.0").publish(machine.index)

    assert versions(machine.resolve("acme-gems"))["acme-base"] == "1.0"


@pytest.mark.programs
def test_others_are_taken_where_those_can_not_be_had(machine: Machine) -> None:
    machine.has(Made("acme-gems", requires=("acme-base",)))
    machine.has(Made("acme-base", "1.0", tag="cp311-cp311-macosx_14_0_arm64"))
    Made("acme-base", "2.0").publish(machine.index)

    assert versions(machine.resolve("acme-gems"))["acme-base"] == "2.0"
    assert machine.told[-1] == (
        "Not all versions that are installed here can be had for Python 3.11 on manylinux2014_x86_64; "
        "others are taken: acme-base 2.0 (here 1.0)"
    )


@pytest.mark.programs
def test_without_a_lock_nothing_is_written(machine: Machine, tmp_path: Path) -> None:
    machine.has(Made("acme-gems"))
    before = set(tmp_path.iterdir())
    lock = resolve(DepsRequest(("acme-gems",), "4.2.0"), cache=machine.cache)

    assert versions(lock) == {"acme-gems": "1.0"}
    assert set(tmp_path.iterdir()) - before == {machine.cache}


@pytest.mark.programs
def test_the_project_s_own_requirements_come_too(machine: Machine) -> None:
    machine.has(Made("acme-gems"))
    Made("acme-http", "1.0").publish(machine.index)
    Made("acme-http", "2.0").publish(machine.index)
    lock = machine.resolve("acme-gems", requirements=("acme-http <2",))

    assert versions(lock) == {"acme-gems": "1.0", "acme-http": "1.0"}
    assert lock.question.requirements == ("acme-gems==1.0", "acme-http<2")


@pytest.mark.programs
def test_the_project_may_want_another_version_than_is_installed(machine: Machine) -> None:
    machine.has(Made("acme-gems", requires=("acme-base",)))
    machine.has(Made("acme-base", "1.0"))
    machine.has(Made("acme-http", "1.0"))
    Made("acme-http", "2.0").publish(machine.index)
    Made("acme-base", "2.0").publish(machine.index)
    lock = machine.resolve("acme-gems", requirements=("acme-http>=2",))

    assert versions(lock) == {"acme-base": "1.0", "acme-gems": "1.0", "acme-http": "2.0"}


@pytest.mark.programs
def test_extras_bring_what_they_need(machine: Machine) -> None:
    machine.has(
        Made(
            "acme-gems",
            requires=('acme-fast[x]; extra == "fast"', 'acme-slow; extra == "slow"'),
            extras=("fast", "slow"),
        )
    )
    Made("acme-fast", requires=('acme-x; extra == "x"', 'acme-y; extra == "y"'), extras=("x", "y")).publish(
        machine.index
    )
    Made("acme-x").publish(machine.index)
    lock = machine.resolve("acme-gems[fast]")

    assert {each.name: each.requires for each in lock.distributions} == {
        "acme-fast": ("acme-x",),
        "acme-gems": ("acme-fast",),
        "acme-x": (),
    }


@pytest.mark.programs
def test_what_the_cluster_brings_is_left_out(machine: Machine) -> None:
    machine.has(Made("acme-gems", requires=("pyspark>=4", "py4j", "acme-base")))
    Made("acme-base", requires=("pyspark<=4.2.0",)).publish(machine.index)

    assert versions(machine.resolve("acme-gems")) == {"acme-base": "1.0", "acme-gems": "1.0"}


@pytest.mark.programs
def test_what_pyspark_s_extras_stand_for_comes_along(machine: Machine) -> None:
    machine.has(Made("acme-gems", requires=("pyspark[sql]",)))
    for name in ("pandas", "pyarrow", "numpy"):
        Made(name, "99.0").publish(machine.index)

    assert versions(machine.resolve("acme-gems")) == {
        "acme-gems": "1.0",
        **dict.fromkeys(("numpy", "pandas", "pyarrow"), "99.0"),
    }


@pytest.mark.programs
def test_markers_are_those_of_the_target_and_not_of_this_machine(machine: Machine) -> None:
    machine.has(
        Made(
            "acme-gems",
            requires=(
                'acme-windows>=1; sys_platform == "win32"',
                'acme-unix; sys_platform != "win32"',
                'acme-new; python_version >= "3.14"',
                'acme-old; python_version < "3.14"',
            ),
        )
    )
    for name in ("acme-unix", "acme-new", "acme-old", "acme-deep"):
        Made(name).publish(machine.index)
    Made("acme-windows", requires=("acme-deep",)).publish(machine.index)
    lock = machine.resolve("acme-gems", python="3.14", platform="win_amd64")

    assert {each.name: each.requires for each in lock.distributions} == {
        "acme-deep": (),
        "acme-gems": ("acme-new", "acme-windows"),
        "acme-new": (),
        "acme-windows": ("acme-deep",),
    }


# What is installed from elsewhere than an index


def develop(machine: Machine, made: Made, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = machine.site.parent / "project"
    made.develop(machine.site, project)
    monkeypatch.syspath_prepend(project)
    return project


@pytest.mark.programs
def test_an_editable_plugin_is_packed_and_marked(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    develop(machine, Made("acme-gems", "1.2", requires=("acme-base",)), monkeypatch)
    Made("acme-gems", "1.2", files={"other.py": b""}).publish(machine.index)
    Made("acme-base", requires=("acme-gems==1.2",)).publish(machine.index)
    lock = machine.resolve("acme-gems")
    gems = lock.distributions[1]

    assert (gems.version, gems.editable, gems.packed) == ("1.2+editable", True, True)
    assert gems.modules == ("acme_gems",)
    assert lock.question.packed == (("acme-gems", ("acme-base",)),)
    assert gems.file == "acme_gems-1.2+editable-py3-none-any.whl"
    assert machine.fetch(lock)[gems.file].is_file()
    assert str(machine.site.parent) not in machine.lock.read_text()


@pytest.mark.programs
def test_what_an_editable_plugin_needs_may_be_editable_too(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.has(Made("acme-gems", requires=("acme-base>=1",)))
    develop(machine, Made("acme-base"), monkeypatch)
    Made("acme-base", "3.0").publish(machine.index)

    assert versions(machine.resolve("acme-gems"))["acme-base"] == "1.0+editable"


@pytest.mark.programs
def test_an_edited_plugin_is_packed_anew(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    project = develop(machine, Made("acme-gems"), monkeypatch)
    before = machine.resolve("acme-gems").distributions[0]
    (project / "acme_gems" / "more.py").write_text("x = 1\n")
    machine.told.clear()
    lock = machine.resolve("acme-gems")
    after = lock.distributions[0]

    assert after.sha256 != before.sha256
    assert DepsLock.read(machine.lock) == lock
    assert machine.told == [
        "acme-gems is installed in editable mode and has changed: its files are packed anew"
    ]
    assert machine.fetch(lock)[after.file].is_file()


@pytest.mark.programs
def test_of_packed_plugins_only_the_last_are_kept(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    project = develop(machine, Made("acme-gems"), monkeypatch)
    for number in range(12):
        (project / "acme_gems" / "more.py").write_text(f"x = {number}\n")
        lock = machine.resolve("acme-gems")

    assert len(list((machine.cache / "wheels-packed" / "acme-gems").iterdir())) == 8
    assert len(machine.fetch(lock)) == 1


@pytest.mark.programs
def test_a_plugin_from_elsewhere_must_not_change(machine: Machine) -> None:
    Made("acme-gems").install(machine.site, ELSEWHERE)
    lock = machine.resolve("acme-gems")
    assert (lock.distributions[0].packed, lock.distributions[0].editable) == (True, False)
    assert machine.resolve("acme-gems") == lock
    (machine.site / "acme_gems" / "__init__.py").write_text("x = 2\n")

    with pytest.raises(GemError, match=r"`acme-gems` 1.0 has other files now") as caught:
        machine.resolve("acme-gems")
    assert caught.value.code == "GB646"
    assert machine.resolve("acme-gems", update=True) != lock


@pytest.mark.programs
def test_what_was_packed_elsewhere_can_not_be_fetched(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    develop(machine, Made("acme-gems"), monkeypatch)
    lock = machine.resolve("acme-gems")

    with pytest.raises(GemError, match="`acme-gems` was packed from what was installed") as caught:
        fetch(lock, cache=machine.cache.with_name("another"))
    assert caught.value.code == "GB645"


# Refusals


@pytest.mark.programs
def test_a_lock_for_something_else_is_refused(machine: Machine) -> None:
    machine.has(Made("acme-gems"))
    machine.resolve("acme-gems")
    content = machine.lock.read_bytes()
    with pytest.raises(GemError, match=r"made for something else: Python was 3.11 and is 3.12 now") as caught:
        machine.resolve("acme-gems", python="3.12")

    assert caught.value.code == "GB646"
    assert "--update-lock" in caught.value.hint
    assert machine.lock.read_bytes() == content
    assert machine.resolve("acme-gems", python="3.12", update=True).question.python == "3.12"


@pytest.mark.programs
def test_a_plugin_that_was_upgraded_needs_a_new_lock(machine: Machine) -> None:
    machine.has(Made("acme-gems", "1.0"))
    machine.resolve("acme-gems")
    for file in (machine.site / "acme_gems-1.0.dist-info").iterdir():
        file.unlink()
    (machine.site / "acme_gems-1.0.dist-info").rmdir()
    machine.has(Made("acme-gems", "2.0"))

    with pytest.raises(GemError, match=r"`acme-gems==1.0` isn't wanted any more; `acme-gems==2.0` is new"):
        machine.resolve("acme-gems")


@pytest.mark.programs
def test_no_wheel_for_the_platform(machine: Machine) -> None:
    machine.has(Made("acme-gems", requires=("acme-base>=1",)))
    for tag in (
        "cp311-cp311-win_amd64",
        "cp311-cp311-manylinux_2_28_x86_64",
        "cp312-cp312-macosx_14_0_arm64",
    ):
        Made("acme-base", "1.5", tag=tag).publish(machine.index)
    error = machine.refusal("acme-gems")

    assert error.code == "GB642"
    assert (
        "there are wheels for `cp311-cp311-manylinux_2_28_x86_64`, `cp311-cp311-win_amd64`" in error.message
    )
    assert error.message.startswith("`acme-base>=1`, which acme-gems needs, has no wheel for Python 3.11 on")
    for tag in (
        "cp311-cp311-win_amd64",
        "cp311-cp311-manylinux_2_28_x86_64",
        "cp312-cp312-macosx_14_0_arm64",
    ):
        assert f"`{tag}`" in error.message
    assert "--platform manylinux_2_28_x86_64" in error.hint
    assert versions(machine.resolve("acme-gems", platform="manylinux_2_28_x86_64"))["acme-base"] == "1.5"


@pytest.mark.programs
def test_a_distribution_for_another_python(machine: Machine) -> None:
    machine.has(Made("acme-gems", python=">=3.12"))
    error = machine.refusal("acme-gems")

    assert error.code == "GB642"
    assert error.message == "`acme-gems` doesn't run with Python 3.11: it requires Python >=3.12"
    assert "--python" in error.hint
    assert versions(machine.resolve("acme-gems", python="3.12")) == {"acme-gems": "1.0"}


@pytest.mark.programs
def test_no_version_for_the_python(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.has(Made("acme-gems", requires=("acme-base",)))
    page = machine.index / "links.html"
    page.write_text(
        "<!DOCTYPE html><html><body>"
        '<a href="acme_base-1.0-py3-none-any.whl" data-requires-python="&gt;=3.12">acme-base</a>'
        "</body></html>"
    )
    monkeypatch.setenv("PIP_FIND_LINKS", f"{machine.index} {page.as_uri()}")
    error = machine.refusal("acme-gems")

    assert error.code == "GB642"
    assert error.message == "`acme-base`, which acme-gems needs, has no version for Python 3.11"


@pytest.mark.programs
def test_only_source_code(machine: Machine) -> None:
    machine.has(Made("acme-gems", requires=("acme-base",)))
    (machine.index / "acme_base-1.0.tar.gz").write_bytes(b"")
    error = machine.refusal("acme-gems")

    assert error.code == "GB642"
    assert "has no wheel at all, only its source code" in error.message
    assert "pip wheel --no-deps 'acme-base" in error.hint


@pytest.mark.programs
def test_no_such_distribution(machine: Machine) -> None:
    machine.has(Made("acme-gems", requires=("acme-bsae",)))
    error = machine.refusal("acme-gems")

    assert error.code == "GB642"
    assert error.message == "`acme-bsae`, which acme-gems needs, is in no index that pip asks"
    assert "PIP_FIND_LINKS" in error.hint


@pytest.mark.programs
def test_versions_that_exclude_each_other(machine: Machine) -> None:
    machine.has(Made("acme-gems", requires=("acme-base<2",)))
    machine.has(Made("acme-more", requires=("acme-base>=2",)))
    Made("acme-base", "1.0").publish(machine.index)
    Made("acme-base", "2.0").publish(machine.index)
    error = machine.refusal("acme-gems", "acme-more")

    assert error.code == "GB643"
    assert error.message == (
        "the distributions contradict each other: acme-gems 1.0 depends on acme-base<2; "
        "acme-more 1.0 depends on acme-base>=2"
    )


@pytest.mark.programs
def test_another_spark_than_the_cluster_s(machine: Machine) -> None:
    machine.has(Made("acme-gems", requires=("pyspark<4",)))
    error = machine.refusal("acme-gems")

    assert error.code == "GB643"
    assert error.message == (
        "the distributions contradict each other: acme-gems 1.0 depends on pyspark<4; "
        "it has to be pyspark 4.2.0"
    )


@pytest.mark.parametrize("text", ["acme gems", ">=1", ""])
def test_what_is_no_requirement(text: str, machine: Machine) -> None:
    machine.has(Made("acme-gems"))
    error = machine.refusal("acme-gems", requirements=(text,))

    assert (error.code, error.message) == ("GB643", f"`{text}` is not a requirement")


@pytest.mark.programs
def test_no_network(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.has(Made("acme-gems"))
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://user:secret@127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    error = machine.refusal("acme-gems")

    assert error.code == "GB644"
    assert error.message == ("the index of Python packages can't be reached: [Errno 111] Connection refused")
    assert "secret" not in str(error)


@pytest.mark.programs
def test_no_pip(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.has(Made("acme-gems"))
    venv.create(tmp_path / "bare", with_pip=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare" / "bin" / "python"))
    error = machine.refusal("acme-gems")

    assert error.code == "GB640"
    assert "ensurepip" in error.hint


def test_an_old_pip(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.has(Made("acme-gems"))
    monkeypatch.setattr("gem_bundler.dependencies.download.version", lambda _: "23.2.1")
    error = machine.refusal("acme-gems")

    assert error.code == "GB640"
    assert error.message.endswith("needs pip 26.2 or newer, and here is 23.2.1")
    assert "-m pip install --upgrade pip" in error.hint


def test_a_packed_wheel_for_another_platform(machine: Machine) -> None:
    Made("acme-gems", tag="cp311-cp311-linux_x86_64").install(machine.site, ELSEWHERE)
    error = machine.refusal("acme-gems")

    assert error.code == "GB648"
    assert "`acme_gems-1.0-cp311-cp311-linux_x86_64.whl`" in error.message


@pytest.mark.programs
def test_what_is_only_needed_on_other_machines_is_not_packed(machine: Machine) -> None:
    machine.has(Made("acme-gems", requires=("acme-base",)))
    Made("acme-base", tag="cp311-cp311-linux_x86_64").install(machine.site, ELSEWHERE)
    Made("acme-base", tag=NATIVE).publish(machine.index)
    lock = machine.resolve("acme-gems")

    assert [(each.file, each.packed) for each in lock.distributions] == [
        (f"acme_base-1.0-{NATIVE}.whl", False),
        ("acme_gems-1.0-py3-none-any.whl", False),
    ]


def test_what_is_not_installed_is_told(machine: Machine) -> None:
    assert machine.refusal("acme-gems").code == "GB648"


# The files of a lock


@pytest.mark.programs
def test_the_same_lock_gives_the_same_archive_on_another_machine(machine: Machine, tmp_path: Path) -> None:
    machine.has(Made("acme-gems", requires=("acme-base",)))
    Made("acme-base", "1.0").publish(machine.index)
    lock = machine.resolve("acme-gems")
    Made("acme-base", "1.1").publish(machine.index)
    archives = set()
    for cache in (machine.cache, tmp_path / "another"):
        write_archive(lock, fetch(lock, cache=cache), tmp_path / "deps.tar.gz")
        archives.add((tmp_path / "deps.tar.gz").read_bytes())

    assert len(archives) == 1


@pytest.mark.programs
def test_an_empty_cache_is_filled_with_exactly_the_locked_files(machine: Machine) -> None:
    machine.has(Made("acme-gems", requires=("acme-base",)))
    Made("acme-base", "1.0").publish(machine.index)
    lock = machine.resolve("acme-gems")
    Made("acme-base", "2.0").publish(machine.index)
    machine.told.clear()
    elsewhere = machine.cache.with_name("another")
    files = fetch(lock, cache=elsewhere, report=machine.told.append)

    assert machine.told == ["Fetching acme-base 1.0, acme-gems 1.0"]
    assert sorted(files) == ["acme_base-1.0-py3-none-any.whl", "acme_gems-1.0-py3-none-any.whl"]
    assert all(path.is_relative_to(elsewhere) for path in files.values())


@pytest.mark.programs
def test_a_damaged_file_in_the_cache_is_fetched_again(machine: Machine) -> None:
    machine.has(Made("acme-gems"))
    lock = machine.resolve("acme-gems")
    (path,) = machine.fetch(lock).values()
    good = path.read_bytes()
    path.write_bytes(good[:-1])

    assert machine.fetch(lock)[path.name].read_bytes() == good


@pytest.mark.programs
def test_a_file_that_was_replaced_in_the_index_is_refused(machine: Machine) -> None:
    machine.has(Made("acme-gems"))
    lock = machine.resolve("acme-gems")
    Made("acme-gems", files={"acme_gems/__init__.py": b"evil = True\n"}).publish(machine.index)

    with pytest.raises(
        GemError, match=r"the file of `acme-gems==1.0` is another one than the lock names"
    ) as caught:
        fetch(lock, cache=machine.cache.with_name("another"))
    assert caught.value.code == "GB645"
    assert "/" not in caught.value.message


@pytest.mark.programs
def test_a_file_that_has_left_the_index_is_told(machine: Machine) -> None:
    machine.has(Made("acme-gems"))
    lock = machine.resolve("acme-gems")
    for file in machine.index.iterdir():
        file.unlink()

    with pytest.raises(GemError, match=r"`acme-gems==1.0`") as caught:
        fetch(lock, cache=machine.cache.with_name("another"))
    assert caught.value.code == "GB642"


@pytest.mark.programs
def test_the_runtime_and_its_native_dependencies_come_from_the_index(tmp_path: Path) -> None:
    lock = resolve(
        DepsRequest(("gem-bundle[kafka]",), "4.2.0", platform="manylinux2014_aarch64"), cache=tmp_path
    )
    found = {each.name: each for each in lock.distributions}

    assert {
        "click",
        "fsspec",
        "gem-bundle",
        "kafka-python",
        "pluggy",
        "pydantic",
        "pyyaml",
        "sqlglot",
    } <= set(found)
    assert not {"py4j", "pyspark", "pytest"} & set(found)
    assert "aarch64" in found["pydantic-core"].file
    assert "pydantic-core" in found["pydantic"].requires
    assert {"gem_bundle", "gem_kafka", "pydantic_core", "yaml"} <= lock.modules()
