"""Pages that are done as they say: files written, commands typed, and what they print compared.

A block below ``<!-- file: NAME -->`` is a file to write. In a block of ``console`` the lines that begin with ``$``
are commands, and the lines below each are what it prints; after a line ``$ cd FOLDER`` commands are typed there, and
files written. Any other block only shows something, and says why nobody does it: ``<!-- shown: REASON -->`` stands
above it.
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import signal
import subprocess
import sysconfig
import venv
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

BLOCK = re.compile(
    r"(?:<!-- (?P<mark>file|shown): (?P<said>[^\n]+?) -->\n)?"
    r"^```(?P<language>[^\n`]*)\n(?P<text>.*?)^```$",
    re.M | re.S,
)
# A status line is gone when the next text is put in its place.
ERASED = re.compile(r"[^\n]*\r(?:\x1b\[K)?")
# A line of its own: any lines. Within a line: anything but a line break.
ANY_LINES, ANY_TEXT = "...", "..."


@dataclass(frozen=True)
class Command:
    """A command of a tour and what it prints, from a line of the page."""

    line: int
    text: str
    printed: tuple[str, ...]


@dataclass(frozen=True)
class File:
    """A file that a tour has its reader write."""

    name: str
    text: str


def tour(page: str, start: str = "", end: str = "") -> Iterator[Command | File]:
    """The files and commands of a page, in their order.

    Args:
        page: The page, as Markdown.
        start: Where the tour begins; by default at the top.
        end: Where it ends, behind its start; by default at the end of the page.
    """
    first = page.index(start)
    last = page.index(end, first + 1) if end else len(page)
    for block in BLOCK.finditer(page, first, last):
        text = block["text"]
        line = page.count("\n", 0, block.start("text")) + 1
        if block["mark"] == "file":
            yield File(block["said"], text)
        elif block["mark"] != "shown" and not block["language"].startswith("{"):
            assert block["language"] == "console", f"line {line}: nobody tests this block"
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


def follow(
    page: Path,
    folder: Path,
    scripts: Path,
    *,
    start: str = "",
    end: str = "",
    environment: Mapping[str, str] | None = None,
) -> int:
    """Do what a page says, and compare what is printed; return how many commands that were.

    Args:
        page: The page.
        folder: Where it is done; an empty folder.
        scripts: The folder of the commands, which come before others of their names.
        start: Where the tour begins; by default at the top.
        end: Where it ends; by default at the end.
        environment: The environment variables; by default those of this process.
    """
    given = os.environ if environment is None else environment
    environment = {
        **given,
        "PATH": os.pathsep.join([str(scripts), given["PATH"]]),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "COLUMNS": "120",
    }
    folder.mkdir(parents=True, exist_ok=True)
    done = 0
    left: list[int] = []
    try:
        for step in tour(page.read_text(encoding="utf-8"), start, end):
            if isinstance(step, File):
                (folder / step.name).parent.mkdir(parents=True, exist_ok=True)
                (folder / step.name).write_text(step.text, encoding="utf-8")
                continue
            if step.text.startswith("cd "):
                folder = folder / step.text.removeprefix("cd ")
                continue
            printed = type_in(step.text, folder, environment, left)
            assert matches(step.printed, printed), (
                f"{page.name}:{step.line}: `{step.text}` printed\n{printed}\ninstead of\n"
                + "\n".join(step.printed)
            )
            done += 1
    finally:
        # What a page starts in the background it also stops, unless it got stuck on the way.
        for group in left:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
    return done


def virtual_environment(folder: Path, parent: Path | None = None) -> Path:
    """The scripts of a virtual environment that has what another one has, and keeps what a tour installs.

    Args:
        folder: Where it is made.
        parent: The site-packages of the other one; by default those of this process.
    """
    venv.create(folder)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    there = str(parent or sysconfig.get_path("purelib"))
    (site_packages / "parent.pth").write_text(f"import site; site.addsitedir({there!r})\n")
    for command, module in {"gem-bundle": "gem_bundle", "pip": "pip"}.items():
        script = folder / "bin" / command
        script.write_text(f'#!/bin/sh\nexec "{folder}/bin/python" -m {module} "$@"\n')
        script.chmod(0o755)
    return folder / "bin"


def type_in(command: str, folder: Path, environment: Mapping[str, str], left: list[int] | None = None) -> str:
    """What a command prints on a terminal.

    Args:
        command: The command.
        folder: Where it is typed.
        environment: The environment variables.
        left: Gets the process group of a command that goes on in the background.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    if left is not None and command.endswith("&"):
        left.append(process.pid)
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
    return ERASED.sub("", said.decode().replace("\r\n", "\n"))


def matches(expected: tuple[str, ...], printed: str) -> bool:
    """Whether a text is as expected; ``...`` stands for any lines, or within a line for any text."""
    pattern = ""
    for line in expected:
        if line == ANY_LINES:
            pattern += r"(?:.*\n)*"
        else:
            pattern += r".*".join(re.escape(part) for part in line.rstrip().split(ANY_TEXT)) + r" *\n"
    return re.fullmatch(pattern, printed) is not None


def main() -> None:
    """Follow a page from the command line, with the commands of an environment."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("page", type=Path, help="the page, as Markdown")
    parser.add_argument("folder", type=Path, help="where it is done; an empty folder")
    parser.add_argument("scripts", type=Path, help="the folder of the commands")
    parser.add_argument("--from", dest="start", default="", help="the heading where the tour begins")
    parser.add_argument("--to", dest="end", default="", help="how the line begins where it ends")
    said = parser.parse_args()
    end = f"\n{said.end}" if said.end else ""
    done = follow(said.page, said.folder, said.scripts, start=said.start, end=end)
    print(f"{done} commands of {said.page.name} print what it says")


if __name__ == "__main__":
    main()
