"""Distributions for the tests of dependencies: wheels in a folder, and installations."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gem_bundler.wheels.files import make_wheel

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Made:
    """A distribution that a test makes: of pure Python unless its tag says otherwise."""

    name: str
    version: str = "1.0"
    requires: tuple[str, ...] = ()
    tag: str = "py3-none-any"
    files: dict[str, bytes] = field(default_factory=dict)
    extras: tuple[str, ...] = ()
    entry_points: str = ""
    python: str = ""

    @property
    def module(self) -> str:
        return self.name.replace("-", "_")

    @property
    def info(self) -> str:
        return f"{self.module}-{self.version}.dist-info"

    @property
    def wheel_name(self) -> str:
        return f"{self.module}-{self.version}-{self.tag}.whl"

    def sources(self) -> dict[str, bytes]:
        return self.files or {f"{self.module}/__init__.py": f'"""{self.name}."""\n'.encode()}

    def metadata(self) -> dict[str, bytes]:
        lines = ["Metadata-Version: 2.1", f"Name: {self.name}", f"Version: {self.version}"]
        lines += [f"Requires-Python: {self.python}"] if self.python else []
        lines += ["License-Expression: Apache-2.0"]
        lines += [f"Provides-Extra: {extra}" for extra in self.extras]
        lines += [f"Requires-Dist: {text}" for text in self.requires]
        found = {
            "METADATA": ("\n".join(lines) + "\n\nWhat it is for.\n").encode(),
            "WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {self.tag}\n".encode(),
        }
        if self.entry_points:
            found["entry_points.txt"] = self.entry_points.encode()
        return found

    def content(self) -> bytes:
        files = {f"{self.info}/{name}": content for name, content in self.metadata().items()}
        return make_wheel({**self.sources(), **files}, self.info)

    def publish(self, index: Path) -> Path:
        """Put its wheel into the folder that stands for an index."""
        index.mkdir(parents=True, exist_ok=True)
        path = index / self.wheel_name
        path.write_bytes(self.content())
        return path

    def install(self, site: Path, direct_url: dict[str, object] | None = None) -> None:
        """Install it into a folder of Python's path, as pip does; with a URL it came from no index."""
        files = dict(self.sources())
        for name, content in self.metadata().items():
            files[f"{self.info}/{name}"] = content
        self._write(site, files, direct_url)

    def develop(
        self, site: Path, project: Path, *, top_level: bool = True, source: str = "", pth: bool = True
    ) -> None:
        """Install it in editable mode: its sources are in a project, and a ``.pth`` file names their folder."""
        folder = project / source
        for name, content in self.sources().items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        (project / "pyproject.toml").write_text("[project]\n")
        files = {f"{self.info}/{name}": content for name, content in self.metadata().items()}
        if pth:
            files[f"__editable__.{self.module}.pth"] = f"{folder}\n".encode()
        if top_level:
            modules = sorted({name.partition("/")[0].partition(".")[0] for name in self.sources()})
            files[f"{self.info}/top_level.txt"] = "\n".join(modules).encode()
        self._write(site, files, {"url": project.as_uri(), "dir_info": {"editable": True}})

    def _write(self, site: Path, files: dict[str, bytes], direct_url: dict[str, object] | None) -> None:
        files[f"{self.info}/INSTALLER"] = b"pip\n"
        if direct_url is not None:
            files[f"{self.info}/direct_url.json"] = json.dumps(direct_url).encode()
        record = [*files, f"{self.info}/RECORD", f"../../bin/{self.name}"]
        files[f"{self.info}/RECORD"] = "".join(f"{name},,\n" for name in record).encode()
        for name, content in files.items():
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_bytes(content)
