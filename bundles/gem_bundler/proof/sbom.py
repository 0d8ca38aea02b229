"""The bill of materials: the bundle, its Python distributions and its jars as CycloneDX 1.6 JSON.

It has no date, and its serial number comes from the bundle's version, so that the same bundle has the same
one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID, uuid5

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from gem_bundler.bundle.manifest import Manifest
    from gem_bundler.bundle.model import LockedDistribution, LockedJar

_NAMESPACE = UUID("5f3c2a52-6d3b-5a39-9d0e-7a5f0e6f2c11")


def bill_of_materials(manifest: Manifest) -> bytes:
    """The file's bytes.

    Args:
        manifest: What the bundle is made of.
    """
    bundle = _purl("pypi", manifest.entry_point, manifest.version)
    distributions = sorted(manifest.distributions, key=lambda each: each.name)
    jars = sorted(manifest.jars, key=lambda jar: jar.coordinate)
    root: dict[str, Any] = {
        "type": "application",
        "bom-ref": bundle,
        "name": manifest.entry_point,
        "version": manifest.version,
        "purl": bundle,
    }
    if manifest.description.strip():
        root["description"] = " ".join(manifest.description.split())
    tool = {"type": "application", "name": "gem-bundle", "version": manifest.runtime.gem_bundle}
    bill = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(_NAMESPACE, bundle)}",
        "version": 1,
        "metadata": {"tools": {"components": [tool]}, "component": root},
        "components": [*map(_python, distributions), *map(_java, jars)],
        "dependencies": _dependencies(bundle, manifest, distributions, jars),
    }
    return (json.dumps(bill, ensure_ascii=False, indent=1) + "\n").encode()


def _python(distribution: LockedDistribution) -> dict[str, Any]:
    purl = _purl("pypi", distribution.name, distribution.version)
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": distribution.name,
        "version": distribution.version,
    }
    component["hashes"] = [{"alg": "SHA-256", "content": distribution.sha256}]
    if distribution.licence.strip():
        component["licenses"] = [_licence(distribution.licence.strip())]
    component["purl"] = purl
    if distribution.editable:
        component["properties"] = [{"name": "gem-bundle:editable", "value": "true"}]
    return component


def _java(jar: LockedJar) -> dict[str, Any]:
    group, artifact, version = jar.coordinate.split(":")
    purl = _jar_purl(jar)
    return {
        "type": "library",
        "bom-ref": purl,
        "group": group,
        "name": artifact,
        "version": version,
        "hashes": [{"alg": "SHA-256", "content": jar.sha256}],
        "purl": purl,
    }


def _dependencies(
    bundle: str, manifest: Manifest, distributions: list[LockedDistribution], jars: list[LockedJar]
) -> list[dict[str, Any]]:
    """Who needs whom, as far as it is known: a distribution by its requirements, a jar by the bundle."""
    purls = {each.name: _purl("pypi", each.name, each.version) for each in distributions}
    direct = {canonicalize_name(Requirement(text).name) for text in manifest.requires}
    needed = [purls[name] for name in sorted(direct & purls.keys())] + [_jar_purl(jar) for jar in jars]
    found = [{"ref": bundle, "dependsOn": needed}]
    for each in distributions:
        below = [purls[name] for name in sorted(set(each.requires) & purls.keys())]
        found.append({"ref": purls[each.name], "dependsOn": below})
    return found


def _licence(text: str) -> dict[str, Any]:
    """An expression where it is one of SPDX, else what the distribution calls it, on one line."""
    try:
        return {"expression": canonicalize_license_expression(text)}
    except InvalidLicenseExpression:
        return {"license": {"name": text.splitlines()[0]}}


def _purl(kind: str, name: str, version: str) -> str:
    return f"pkg:{kind}/{quote(name, safe='/')}@{quote(version, safe='')}"


def _jar_purl(jar: LockedJar) -> str:
    group, artifact, version = jar.coordinate.split(":")
    return f"{_purl('maven', f'{group}/{artifact}', version)}?type=jar"
