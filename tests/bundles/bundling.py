"""Whole bundles in a folder, for the tests that start them."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from gem_bundle.check.checker import check_file
from gem_bundle.pipeline.loader import LoadOptions
from gem_bundle.plugins import load_registry
from gem_bundler.bundle.manifest import Manifest, write
from gem_bundler.bundle.model import GemUse
from gem_bundler.dependencies.archive import write_archive
from gem_bundler.dependencies.needed import needed_distributions
from gem_bundler.dependencies.request import DepsRequest, fetch, resolve
from gem_bundler.jars.lock import JarRequest, lock_jars, vendor
from gem_bundler.platforms.spark_submit.definition import files as job_files
from gem_bundler.start.main_py import main_py
from gem_bundler.wheels.bundle import build_wheel
from tests.bundles.making import collected, draft

if TYPE_CHECKING:
    from pathlib import Path


def bundle_folder(project: Path, to: Path, *names: str, thin: bool = False, **changes: Any) -> Manifest:
    """The bundle of some pipeline files of a project, with the jars that it needs in it.

    Args:
        project: The project's folder.
        to: The bundle's folder; it is made.
        names: The pipeline files.
        thin: Without dependencies.
        changes: What else the manifest says.
    """
    to.mkdir(parents=True)
    registry = load_registry()
    options = LoadOptions(require_parameters=False, skip_env=True)
    plans = [check_file(project / name, options).plan for name in names]
    found = [plan for plan in plans if plan is not None]
    assert len(found) == len(names)
    used = {(node.kind, node.gem) for plan in found for node in plan.definition.nodes.values()}
    origins = [registry.get(kind, gem).origin for kind, gem in sorted(used)]
    gems = tuple(
        GemUse(kind, gem, origin.distribution, origin.version)
        for (kind, gem), origin in zip(sorted(used), origins, strict=True)
    )
    jars = lock_jars(JarRequest.of(found))
    facts: dict[str, Any] = {"gems": gems, "jars": jars, "vendored": bool(jars)}
    lock = None
    if not thin:
        named = [(gem, origin) for (_, gem), origin in zip(sorted(used), origins, strict=True)]
        lock = resolve(DepsRequest(needed_distributions(named), "4.2.0"), to.parent / "deps.lock")
        facts |= {"deps": "deps.tar.gz", "distributions": lock.distributions}
        write_archive(lock, fetch(lock), to / "deps.tar.gz")
    manifest = draft(project, *names, **{**facts, **changes})
    wheel = build_wheel(manifest, collected(project, *names))
    manifest = wheel.manifest
    (to / manifest.wheel).write_bytes(wheel.data)
    (to / manifest.archive).write_bytes(wheel.data)
    deps = to / "deps.tar.gz"
    (to / "main.py").write_bytes(main_py(manifest, sha256(deps.read_bytes()).hexdigest() if lock else None))
    for path, content in job_files(manifest.bundle()).items():
        (to / path).write_bytes(content)
        (to / path).chmod(0o755)
    if jars:
        vendor(jars, to / "jars")
    return write(to, replace(manifest))
