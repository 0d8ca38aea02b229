"""The scripts that make sure of programs, where several of them start at once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
APT = """\
#!/bin/sh
for word; do case $word in update | install) echo "$word begins" >>"$LOG"; sleep 0.05; echo "$word ends" >>"$LOG" ;; esac; done
case " $* " in *" install "*) [ -n "${REFUSES-}" ] || touch "$MADE" ;; esac
"""
# A script like those that make sure of a server's programs.
SERVER = """\
#!/usr/bin/env bash
source "$SCRIPTS/from-debian.sh"
find_programs() { [ -e "$MADE" ] && echo "$MADE"; }
from_debian Something something-server something "install Something 7 or newer"
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A machine where root asks an apt that writes down when it works."""
    nothing = "#!/bin/sh\n"
    programs = {"apt-get": APT, "id": f"{nothing}echo 0\n", "systemctl": nothing, "server": SERVER}
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    given = {"SCRIPTS": SCRIPTS, "LOG": tmp_path / "log", "MADE": tmp_path / "made", "TMPDIR": tmp_path}
    return {**os.environ, "PATH": path, **{name: str(value) for name, value in given.items()}}


@pytest.mark.programs
def test_packages_are_installed_by_one_at_a_time(tmp_path: Path, environment: dict[str, str]) -> None:
    """Apt refuses whoever comes second."""
    command = [SCRIPTS / "debian-packages", "something"]
    started = [subprocess.Popen(command, env=environment) for _ in range(3)]

    assert [each.wait() for each in started] == [0, 0, 0]
    one = ["update begins", "update ends", "install begins", "install ends"]
    assert (tmp_path / "log").read_text().splitlines() == one * 3


@pytest.mark.programs
def test_the_programs_of_a_server_are_installed_once(tmp_path: Path, environment: dict[str, str]) -> None:
    started = [
        subprocess.Popen([tmp_path / "server"], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]

    said = [each.communicate()[0].splitlines() for each in started]
    assert [each.returncode for each in started] == [0, 0, 0]
    assert {lines[-1] for lines in said} == {environment["MADE"]}
    assert sorted(" ".join(lines[:-1]) for lines in said) == [
        "Something: installing it ... Something: installed.",
        *["Something: it is there, nothing to do."] * 2,
    ]
    assert (tmp_path / "log").read_text().count("install begins") == 1


@pytest.mark.programs
def test_who_can_not_install_a_server_is_told_how(tmp_path: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [tmp_path / "server"],
        env={**environment, "REFUSES": "yes"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "Something: apt-get has installed something-server, and what is there doesn't do: "
        "install Something 7 or newer."
    ]
