"""The wheel of a bundle: the same bytes for the same inputs, on any machine and at any time.

Its layout is that of PEP 427, with the bill of materials where PEP 770 wants it. Nothing is compressed,
since what deflate writes depends on the zlib at hand; no date and no file mode of the machine gets in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from gem_bundle.errors import GemError
from gem_bundler.bundle.manifest import NAME, Manifest, describe_file
from gem_bundler.proof.sbom import bill_of_materials
from gem_bundler.wheels.files import make_wheel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gem_bundler.bundle.contents import Contents

_DISTRIBUTION = re.compile(r"[a-z0-9]|[a-z0-9][a-z0-9._-]*[a-z0-9]", re.IGNORECASE)
# Installing a wheel of such a name would replace what the bundle runs on.
_TAKEN = frozenset({"gem-bundle", "py4j", "pyspark"})
_HASH_DIGITS = 12

_INIT = '"""The bundle `{name}`, made by gem-bundle."""\n'
_MAIN = '''\
"""Start the bundle `{name}`: ``python -m {package}``, or the command ``{entry_point}``."""


def main() -> int:
    """Check the bundle, then run its pipeline with the arguments of the command line."""
    from gem_bundler.start import main

    return main("{package}")


def task() -> None:
    """Do the same where only what is raised counts, and no value that is returned: a task on Databricks.

    Raises:
        SystemExit: When something was wrong.
    """
    if status := main():
        raise SystemExit(f"{entry_point} failed with status {{status}}; what it printed says why.")


if __name__ == "__main__":
    raise SystemExit(main())
'''


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel that was built.

    Args:
        manifest: The manifest inside it, with the version and the names that come from its contents.
        data: The bytes of the file; those of the zip for ``--py-files`` are the same.
        sbom: The bill of materials, as it is inside.
    """

    manifest: Manifest
    data: bytes
    sbom: bytes

    @property
    def name(self) -> str:
        """The name of its file."""
        return self.manifest.wheel


def distribution_name(pipeline: str) -> str:
    """The name of the distribution for a pipeline's bundle.

    Args:
        pipeline: The pipeline's name.

    Raises:
        GemError: GB625 when no distribution can have it.
    """
    name = canonicalize_name(pipeline)
    if not _DISTRIBUTION.fullmatch(name):
        raise GemError(
            "GB625",
            f"the pipeline's name `{pipeline}` can't be the name of a wheel: "
            "that begins and ends with a letter or a digit",
            f"Call it `{pipeline.strip('_-.') or 'clicks'}`.",
        )
    if name in _TAKEN:
        raise GemError(
            "GB625",
            f"installing a bundle `{name}` would replace the distribution of that name, which it needs",
            "Give the pipeline another name.",
        )
    return name


def base_version(version: str) -> str:
    """The pipeline's version as a wheel has it, without the hash of the contents.

    Raises:
        GemError: GB626 when no distribution can have it.
    """
    try:
        parsed = Version(version)
    except InvalidVersion as error:
        raise GemError(
            "GB626",
            f"the pipeline's version `{version}` can't be the version of a wheel",
            "Write it as PEP 440 has it, for example `1.4.0` or `1.4.0rc1`.",
        ) from error
    if parsed.local is not None:
        raise GemError(
            "GB626",
            f"the pipeline's version `{version}` has a `+`",
            f"Write `{parsed.public}`: the build puts the hash of the contents after the `+`.",
        )
    return str(parsed)


def build_wheel(draft: Manifest, contents: Contents) -> Wheel:
    """Build the wheel.

    Its version is the draft's with a hash over everything that goes in, but for the version itself.

    Args:
        draft: The manifest, with the pipeline's version; the names that depend on the hash, and the list
            of what is in the wheel, are filled in.
        contents: What of the project goes in.

    Raises:
        GemError: GB625 or GB626 when its name or its version can't be those of a distribution.
    """
    distribution = distribution_name(draft.name)
    if any(distribution == canonicalize_name(each.name) for each in draft.distributions):
        raise GemError(
            "GB625",
            f"the bundle would be called `{distribution}`, like a distribution that it needs",
            "Give the pipeline another name.",
        )
    base = base_version(draft.version)
    code = _code(draft, contents)
    draft = replace(draft, contents=tuple(describe_file(path, data) for path, data in sorted(code.items())))
    version = f"{base}+g{_digest(_files(draft, contents, code, base))[:_HASH_DIGITS]}"
    files = _files(draft, contents, code, version)
    manifest = _of_version(draft, version)
    return Wheel(manifest, make_wheel(files, _info_folder(manifest)), bill_of_materials(manifest))


def _of_version(draft: Manifest, version: str) -> Manifest:
    file = f"{canonicalize_name(draft.name).replace('-', '_')}-{version}-py3-none-any.whl"
    archive = f"{canonicalize_name(draft.name).replace('-', '_')}-{version}.zip"
    return replace(draft, version=version, wheel=file, archive=archive)


def _code(draft: Manifest, contents: Contents) -> dict[str, bytes]:
    """The files that are of the project, or made of it, by their path in the wheel."""
    facts = {"name": draft.name, "package": draft.package, "entry_point": draft.entry_point}
    made = {
        f"{draft.package}/__init__.py": _INIT.format(**facts).encode(),
        f"{draft.package}/__main__.py": _MAIN.format(**facts).encode(),
        f"{draft.package}/py.typed": b"",
    }
    project = {f"{draft.package}/project/{path}": data for path, data in contents.pipelines.items()}
    return {**contents.files, **made, **project}


def _files(draft: Manifest, contents: Contents, code: Mapping[str, bytes], version: str) -> dict[str, bytes]:
    """All files of the wheel but its RECORD."""
    manifest = _of_version(draft, version)
    distribution = distribution_name(draft.name)
    info = _info_folder(manifest)
    about = {
        f"{info}/METADATA": _metadata(manifest, distribution),
        f"{info}/WHEEL": _wheel(manifest),
        f"{info}/entry_points.txt": _entry_points(manifest, contents),
        f"{info}/sboms/{distribution}.cdx.json": bill_of_materials(manifest),
    }
    files = {**code, f"{draft.package}/{NAME}": manifest.to_json(), **about}
    return {path: files[path] for path in sorted(files)}


def _info_folder(manifest: Manifest) -> str:
    return f"{manifest.wheel.removesuffix('-py3-none-any.whl')}.dist-info"


def _metadata(manifest: Manifest, distribution: str) -> bytes:
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {distribution}",
        f"Version: {manifest.version}",
    ]
    if manifest.description.strip():
        lines.append(f"Summary: {' '.join(manifest.description.split())}")
    lines.append(f"Requires-Python: >={manifest.runtime.python}")
    lines += [f"Requires-Dist: {requirement}" for requirement in sorted(manifest.requires)]
    return ("\n".join(lines) + "\n").encode()


def _wheel(manifest: Manifest) -> bytes:
    lines = (
        "Wheel-Version: 1.0",
        f"Generator: gem-bundle {manifest.runtime.gem_bundle}",
        "Root-Is-Purelib: true",
        "Tag: py3-none-any",
    )
    return ("\n".join(lines) + "\n").encode()


def _entry_points(manifest: Manifest, contents: Contents) -> bytes:
    main = f"{manifest.package}.__main__"
    # Databricks writes the name of a task's entry point into Python code, where a hyphen or a word of the
    # language can be a syntax error; the package's name is neither.
    scripts = {manifest.entry_point: f"{main}:main", manifest.package: f"{main}:task"}
    lines = ["[console_scripts]", *(f"{name} = {value}" for name, value in scripts.items())]
    if contents.entry_points:
        lines += ["", "[gem_bundle]"]
        lines += [f"{name} = {value}" for name, value in sorted(contents.entry_points)]
    return ("\n".join(lines) + "\n").encode()


def _digest(files: Mapping[str, bytes]) -> str:
    """The hash of names and contents, in hex."""
    whole = sha256()
    for path, data in files.items():
        whole.update(f"{path}\0{len(data)}\0".encode())
        whole.update(data)
    return whole.hexdigest()
