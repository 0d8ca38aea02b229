"""What native parts are built for: a Python and a platform, and what that says to pip."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from packaging.tags import compatible_tags, cpython_tags, platform_tags
from packaging.utils import parse_wheel_filename

from gem_bundle.errors import GemError

DEFAULT_PLATFORM = "manylinux2014_x86_64"

_LEGACY = {"1": 5, "2010": 12, "2014": 17}
_OLDEST = {"x86_64": 5, "i686": 5}
_OLDEST_ELSEWHERE = 17

_MANYLINUX = re.compile(r"manylinux(1|2010|2014|_2_(\d+))_(\w+)")
_MUSLLINUX = re.compile(r"musllinux_(\d+)_(\d+)_(\w+)")
_MACOS = re.compile(r"macosx_\d+_\d+_(\w+)")
_WINDOWS = re.compile(r"win32|win_(\w+)")


def building_python() -> str:
    """The minor version of the Python that is running, ``3.11``."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True, slots=True)
class Target:
    """The Python of a cluster, as far as wheels depend on it.

    Args:
        python: The minor version, ``3.11``.
        platform: A platform tag of wheels, ``manylinux2014_x86_64``: the oldest C library that the cluster's
            machines have, and their processor.

    Raises:
        GemError: GB641 when there is no such Python or platform.
    """

    python: str
    platform: str = DEFAULT_PLATFORM

    def __post_init__(self) -> None:
        if not re.fullmatch(r"3\.\d+", self.python):
            raise GemError(
                "GB641",
                f"`{self.python}` is not a version of Python to build for",
                "Write the minor version that the cluster's nodes have, for example `3.11`.",
            )
        if not any(p.fullmatch(self.platform) for p in (_MANYLINUX, _MUSLLINUX, _MACOS, _WINDOWS)):
            raise GemError(
                "GB641",
                f"`{self.platform}` is not a platform to build for",
                "Write a platform tag of wheels: `manylinux2014_x86_64` for any Linux of the last ten years, "
                "`manylinux_2_28_x86_64` for one with glibc 2.28 or newer, `manylinux2014_aarch64` for ARM.",
            )

    @property
    def tags(self) -> tuple[str, ...]:
        """The platform tags of the wheels that run there, the one with most in common first.

        A newer C library runs what was built for an older one (PEP 600), so all older tags belong to them;
        pip itself adds no more than the two that ``manylinux2014`` had as predecessors.
        """
        if match := _MANYLINUX.fullmatch(self.platform):
            newest = _LEGACY.get(match[1]) or int(match[2])
            processor = match[3]
            names = {minor: name for name, minor in _LEGACY.items()}
            oldest = min(_OLDEST.get(processor, _OLDEST_ELSEWHERE), newest)
            found = []
            for minor in range(newest, oldest - 1, -1):
                found.append(f"manylinux_2_{minor}_{processor}")
                if minor in names:
                    found.append(f"manylinux{names[minor]}_{processor}")
            return tuple(found)
        if match := _MUSLLINUX.fullmatch(self.platform):
            major, newest, processor = int(match[1]), int(match[2]), match[3]
            return tuple(f"musllinux_{major}_{minor}_{processor}" for minor in range(newest, -1, -1))
        return (self.platform,)

    @property
    def is_here(self) -> bool:
        """Whether this process could be part of such a cluster."""
        return self.python == building_python() and self.platform in platform_tags()

    @property
    def abi(self) -> str:
        """The tag of the binary interface, ``cp311``."""
        return f"cp{self.python.replace('.', '')}"

    def pip_options(self) -> list[str]:
        """The options that let pip choose wheels for this target and not for its own Python."""
        options = ["--only-binary=:all:", "--implementation=cp", f"--python-version={self.python}"]
        return [*options, f"--abi={self.abi}", *(f"--platform={tag}" for tag in self.tags)]

    def runs(self, wheel: str) -> bool:
        """Whether a wheel is for this target, by the name of its file."""
        version = (3, int(self.python.partition(".")[2]))
        ours = {*cpython_tags(version, [self.abi], self.tags), *compatible_tags(version, self.abi, self.tags)}
        return not ours.isdisjoint(parse_wheel_filename(wheel)[3])

    def markers(self) -> dict[str, str]:
        """The values of environment markers there (PEP 508).

        The patch release isn't known, so it is taken for the first one: what only older patch releases need
        is then there and does no harm.
        """
        if match := _MACOS.fullmatch(self.platform):
            system, name, processor = "Darwin", "darwin", match[1]
        elif match := _WINDOWS.fullmatch(self.platform):
            system, name, processor = "Windows", "win32", (match[1] or "x86").upper()
        else:
            system, name = "Linux", "linux"
            linux = _MANYLINUX.fullmatch(self.platform) or _MUSLLINUX.fullmatch(self.platform)
            processor = linux[3] if linux else ""
        return {
            "implementation_name": "cpython",
            "implementation_version": f"{self.python}.0",
            "os_name": "nt" if system == "Windows" else "posix",
            "platform_machine": processor,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": system,
            "platform_version": "",
            "python_full_version": f"{self.python}.0",
            "python_version": self.python,
            "sys_platform": name,
        }

    def __str__(self) -> str:
        return f"Python {self.python} on {self.platform}"
