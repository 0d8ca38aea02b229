"""The README's tour, done as it says: files written, commands typed, and what they print compared."""

import os
import pty
import re
import subprocess
import sysconfig
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
TOUR = "## Ten minutes"

BLOCK = re.compile(
    r"(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)
# A line of its own: any lines. Within a line: anything but a line break.
ANY_LINES, ANY_TEXT = "...", "..."


@dataclass(frozen=True)
class Command:
    """A command of the tour and what it prints, from a line of the README."""

    line: int
    text: str
    printed: tuple[str, ...]


@pytest.mark.spark
def test_the_tour_goes_as_the_readme_says(tmp_path: Path) -> None:
    folder = tmp_path / "tour"
    folder.mkdir()
    environment = {
        **os.environ,
        "PATH": f"{virtual_environment(tmp_path / 'venv')}{os.pathsep}{os.environ['PATH']}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "COLUMNS": "120",
    }
    done = 0
    for step in tour(README.read_text()):
        if isinstance(step, Command):
            printed = type_in(step.text, folder, environment)
            assert matches(step.printed, printed), (
                f"README.md:{step.line}: `{step.text}` printed\n{printed}\ninstead of\n"
                + "\n".join(step.printed)
            )
            done += 1
        else:
            name, text = step
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    assert done > 10


def virtual_environment(folder: Path) -> Path:
    """The scripts of a virtual environment that has what this one has, and keeps what the tour installs."""
    venv.create(folder)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    mine = sysconfig.get_path("purelib")
    (site_packages / "parent.pth").write_text(f"import site; site.addsitedir({mine!r})\n")
    for command, module in {"gem-bundle": "gem_bundle", "pip": "pip"}.items():
        script = folder / "bin" / command
        script.write_text(f'#!/bin/sh\nexec "{folder}/bin/python" -m {module} "$@"\n')
        script.chmod(0o755)
    return folder / "bin"


def tour(readme: str) -> Iterator[Command | tuple[str, str]]:
    """The files and commands of the tour, in the order of the page."""
    start = readme.index(TOUR)
    end = readme.index("\n## ", start + 1)
    for block in BLOCK.finditer(readme, start, end):
        text = block["text"]
        line = readme.count("\n", 0, block.start("text")) + 1
        if block["file"]:
            yield block["file"], text
        else:
            assert block["language"] == "console", f"README.md:{line}: nobody tests this block"
            yield from commands(text, line)


def commands(text: str, line: int) -> Iterator[Command]:
    """The commands of a block: lines that begin with ``$``, each with the lines that follow it."""
    found: list[tuple[int, str, list[str]]] = []
    for number, content in enumerate(text.splitlines(), start=line):
        if content.startswith("$ "):
            found.append((number, content[2:], []))
        else:
            found[-1][2].append(content)
    for number, command, printed in found:
        yield Command(number, command, tuple(printed))


def type_in(command: str, folder: Path, environment: dict[str, str]) -> str:
    """What a command prints on a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    # On Linux the end of the last process that has the terminal reads as an error.
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:
            break
        if not chunk:
            break
        said += chunk
    os.close(ours)
    process.wait()
    return said.decode().replace("\r\n", "\n")


def matches(expected: tuple[str, ...], printed: str) -> bool:
    """Whether a text is as expected; ``...`` stands for any lines, or within a line for any text."""
    pattern = ""
    for line in expected:
        if line == ANY_LINES:
            pattern += r"(?:.*\n)*"
        else:
            pattern += r".*".join(re.escape(part) for part in line.rstrip().split(ANY_TEXT)) + r" *\n"
    return re.fullmatch(pattern, printed) is not None


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ((), "", True),
        ((), "a\n", False),
        (("a",), "a\n", True),
        (("a",), "a  \n", True),
        (("a",), "a\nb\n", False),
        (("...", "b"), "b\n", True),
        (("...", "b", "..."), "x\ny\nb\nz\n", True),
        (("...", "b"), "b\nz\n", False),
        (("a ... c",), "a b c\n", True),
        (("a ... c",), "a b\nb c\n", False),
        (("(a.c",), "(abc\n", False),
    ],
)
def test_the_comparison_tells_differences(expected: tuple[str, ...], printed: str, same: bool) -> None:
    assert matches(expected, printed) is same
