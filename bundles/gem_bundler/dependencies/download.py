"""pip as resolver and downloader: what it is asked, and what its refusals mean."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from gem_bundle.diagnostics import listed_names
from gem_bundle.errors import GemError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gem_bundler.bundle.target_platform import Target

_NO_NETWORK = re.compile(
    r"WARNING: Retrying|NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|Could not fetch URL"
    r"|ProxyError|CERTIFICATE_VERIFY_FAILED|(?:4(?!04)|5)\d\d (?:Client|Server) Error"
)
_OTHER_PYTHON = re.compile(r"Package '([^']+)' requires a different Python: \S+ not in '([^']+)'")
_NOT_FOUND = re.compile(r"No matching distribution found for (.+)")
_GIVEN = re.compile(r"The user requested \(constraint\) (\S+) \(from file://\S*/[^/-]+-([^/-]+)-[^/]*\.whl\)")
_SKIPPED = re.compile(r"none of the wheel's tags .*?/([^/#\s]+\.whl)")
_SOURCES = re.compile(r"No sources permitted for ([\w.-]+)")
_MOST_LISTED = 4
OLDEST_PIP = "26.2"


def download(
    requirements: Sequence[str],
    target: Target,
    folder: Path,
    *,
    constraints: Sequence[str] = (),
    dependencies: bool = True,
) -> None:
    """Let pip find the wheels of some requirements for a target, and put them into a folder.

    pip's own settings hold: its index, its certificates, ``PIP_FIND_LINKS``.

    Args:
        requirements: As in a requirements file; with hashes, only files that have one of them are taken.
        target: What the wheels are for.
        folder: Where they go.
        constraints: As in a constraints file.
        dependencies: Whether what they need themselves is taken too.

    Raises:
        GemError: GB640 without pip or with one that is too old, GB642 when there is no wheel for the target,
            GB643 when the requirements contradict each other, GB644 when the index can't be reached, GB645
            when a file has another hash.
    """
    _refuse_old_pip()
    with tempfile.TemporaryDirectory(prefix="gem-bundle-") as place:
        asked, limits, log = (Path(place) / name for name in ("requirements.txt", "constraints.txt", "log"))
        asked.write_text("".join(f"{line}\n" for line in requirements), encoding="utf-8")
        limits.write_text("".join(f"{line}\n" for line in constraints), encoding="utf-8")
        command = [
            *(sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input"),
            *("--no-color", "--progress-bar=off", f"--log={log}", f"--dest={folder}"),
            *target.pip_options(),
            *([f"--constraint={limits}"] if constraints else []),
            *([] if dependencies else ["--no-deps"]),
            f"--requirement={asked}",
        ]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            said = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
            raise _explain(done.stdout, said, target)


def _refuse_old_pip() -> None:
    """Older ones don't resolve extras of what they are given by a constraint, and say other things."""
    try:
        found = version("pip")
    except PackageNotFoundError:
        return  # pip says so itself, if it isn't elsewhere on the path
    if Version(found) < Version(OLDEST_PIP):
        raise GemError(
            "GB640",
            f"building a bundle with its dependencies needs pip {OLDEST_PIP} or newer, and here is {found}",
            f"Run `{sys.executable} -m pip install --upgrade pip`. A build with --thin needs none.",
        )


def _explain(output: str, log: str, target: Target) -> GemError:
    """What pip's refusal means for the person who builds."""
    if re.search(r"No module named '?pip\b", output):
        return GemError(
            "GB640",
            "building a bundle with its dependencies needs pip, which isn't installed here",
            "Install it: `python -m ensurepip`, or `uv pip install pip`. A build with --thin needs none.",
        )
    if "DO NOT MATCH THE HASHES" in output:
        return _other_hash(output)
    if _NO_NETWORK.search(output):
        return GemError(
            "GB644",
            f"the index of Python packages can't be reached: {_reason(output)}",
            "Check the network and pip's settings (`pip config list`). What an existing lock names and the "
            "cache holds needs no network.",
        )
    if other := _OTHER_PYTHON.search(output):
        return GemError(
            "GB642",
            f"`{other[1]}` doesn't run with Python {target.python}: it requires Python {other[2]}",
            "Build for the Python of the cluster with `--python`, where that is another one.",
        )
    missing = _NOT_FOUND.search(output)
    if missing:
        return _no_wheel(missing[1].strip(), output, log, target)
    if "conflicting dependencies" in output or "ResolutionImpossible" in output:
        return GemError(
            "GB643",
            f"the distributions contradict each other: {_conflict(output)}",
            "Change the versions of the plugins, or the project's own requirements.",
        )
    return GemError("GB643", f"pip can't resolve the dependencies: {_last_error(output)}", "")


def _no_wheel(said: str, output: str, log: str, target: Target) -> GemError:
    """There is no such version, only its source code, or wheels for other platforms."""
    text, _, parents = said.partition(" (from ")
    requirement = f"`{text}`" + (f", which {parents.rstrip(')')} needs," if parents else "")
    others = _other_wheels(text, log)
    if others:
        processor = target.markers()["platform_machine"]
        nearest = sorted(others, key=lambda tags: (target.abi not in tags, processor not in tags))
        return GemError(
            "GB642",
            f"{requirement} has no wheel for {target}; there are wheels for "
            f"{listed_names(nearest, most=_MOST_LISTED)}",
            "Build for another platform, where the cluster's machines are newer (`--platform "
            f"manylinux_2_28_{processor}`), or for another Python (`--python`); or put a wheel for this one "
            "into a folder that PIP_FIND_LINKS names.",
        )
    if "require a different python version: " in output:
        return GemError(
            "GB642",
            f"{requirement} has no version for Python {target.python}",
            "Build for the Python of the cluster with `--python`, or change the requirement.",
        )
    project = canonicalize_name(Requirement(text).name)
    if any(canonicalize_name(name) == project for name in _SOURCES.findall(log)):
        return GemError(
            "GB642",
            f"{requirement} has no wheel at all, only its source code",
            f"Make one (`pip wheel --no-deps '{text}'`) and put it into a folder that PIP_FIND_LINKS names; "
            "the wheel of pure Python code runs everywhere.",
        )
    return GemError(
        "GB642",
        f"{requirement} is in no index that pip asks",
        "Correct its name or version; or name the index that has it (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL) or "
        "a folder with its wheel (PIP_FIND_LINKS).",
    )


def _other_wheels(text: str, log: str) -> list[str]:
    """The tags of the wheels of the newest fitting version, by what pip says of those that it skipped."""
    wanted = Requirement(text)
    found: dict[Version, dict[str, None]] = {}
    for file in _SKIPPED.findall(log):
        try:
            name, version, _, _ = parse_wheel_filename(file)
        except InvalidWheelFilename:
            continue
        if name == canonicalize_name(wanted.name) and wanted.specifier.contains(version):
            tags = "-".join(file.removesuffix(".whl").split("-")[-3:])
            found.setdefault(version, {})[tags] = None
    return list(found[max(found)]) if found else []


def _other_hash(output: str) -> GemError:
    found = re.search(r"^\s+(\S+?)(?: from \S+)?(?: \(.*\))?:\s*\n\s*Expected sha256", output, re.MULTILINE)
    return GemError(
        "GB645",
        f"the file of `{found[1] if found else 'a distribution'}` is another one than the lock names",
        "Find out who changed it: a released file never changes. To take the new one, build with "
        "--update-lock.",
    )


def _conflict(output: str) -> str:
    """What pip explains, in one sentence: who depends on what."""
    after = output.partition("The conflict is caused by:")[2].partition("\n\n")[0]
    lines = [" ".join(line.split()) for line in after.strip().splitlines()]
    if lines:
        return "; ".join(_readable(line) for line in lines if line)
    return _last_error(output)


def _readable(line: str) -> str:
    line = _GIVEN.sub(r"it has to be \1 \2", line)
    line = re.sub(r"^The user requested \(constraint\) ", "installed here is ", line)
    return _without_links(re.sub(r"^The user requested ", "asked for is ", line))


def _last_error(output: str) -> str:
    errors = [line.removeprefix("ERROR: ") for line in output.splitlines() if line.startswith("ERROR: ")]
    return _without_links(
        errors[0] if errors else (output.strip().splitlines() or ["it doesn't say why"])[-1]
    )


def _reason(output: str) -> str:
    """The innermost cause that pip names."""
    causes: Iterable[str] = (
        r"\[Errno -?\d+\] [\w ]+",
        r"(?:Connect|Read)Timeout[^'\"]*",
        r"CERTIFICATE_VERIFY_FAILED[^'\"(]*",
        r"\d{3} (?:Client|Server) Error: [\w ]+",
    )
    for cause in causes:
        if found := re.search(cause, output):
            return _without_links(found[0].strip())
    return "no answer"


def _without_links(text: str) -> str:
    """A sentence without addresses, which may carry a password."""
    return re.sub(r"\w+://\S+", "…", text)
