"""What changed between two bundles, from their manifests."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from gem_bundle.pipeline.secrets import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gem_bundler.bundle.manifest import Manifest
    from gem_bundler.bundle.model import BundlePipeline

Kind = Literal["added", "removed", "changed"]
_SIGNS: dict[Kind, str] = {"added": "+", "removed": "-", "changed": "~"}
# Keys whose values may be secrets, whatever declares them; Spark's own rule for what it prints is alike.
_SECRET = re.compile(r"secret|password|passphrase|token|access[._]?key|jaas", re.IGNORECASE)
_ABSENT = object()
_LONGEST = 120


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Args:
        area: Where it is, as a heading: ``bundle``, ``pipeline clicks``, ``job``, ``jars`` and so on.
        kind: ``added``, ``removed`` or ``changed``.
        path: The keys that lead to it.
        old: What was there, for what isn't added.
        new: What is there now, for what isn't removed.
    """

    area: str
    kind: Kind
    path: tuple[str, ...]
    old: Any = None
    new: Any = None

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON takes them."""
        found: dict[str, Any] = {"area": self.area, "kind": self.kind, "path": list(self.path)}
        if self.kind != "added":
            found["old"] = self.old
        if self.kind != "removed":
            found["new"] = self.new
        return found

    def __str__(self) -> str:
        name = ".".join(self.path)
        if self.kind == "changed":
            return f"~ {name}: {_shown(self.old)} → {_shown(self.new)}"
        value = _shown(self.old if self.kind == "removed" else self.new)
        return f"{_SIGNS[self.kind]} {name}: {value}" if value else f"{_SIGNS[self.kind]} {name}"


def diff(old: Manifest, new: Manifest) -> list[Change]:
    """What changed, in the order in which a reader wants to know it.

    Secrets are never in it: neither values of options that are secrets, nor of keys that sound so.
    """
    found = list(_compare("bundle", _facts(old), _facts(new)))
    pipelines = {each.name: each for each in old.pipelines}, {each.name: each for each in new.pipelines}
    for name in dict.fromkeys((*pipelines[0], *pipelines[1])):
        before, after = pipelines[0].get(name), pipelines[1].get(name)
        if before is None or after is None:
            kind: Kind = "added" if before is None else "removed"
            file = (after or before).file  # type: ignore[union-attr]
            found.append(Change(f"pipeline {name}", kind, (file,)))
        else:
            found += _compare(f"pipeline {name}", _pipeline(before), _pipeline(after))
    found += _compare("job", old.job, new.job)
    found += _compare("modules", _modules(old), _modules(new))
    found += _compare("gems", _gems(old), _gems(new))
    found += _compare("distributions", _distributions(old), _distributions(new))
    found += _compare("jars", _jars(old), _jars(new))
    return found


def to_text(changes: Iterable[Change]) -> str:
    """The changes for a reader, under a heading for each area; empty when there are none."""
    areas: dict[str, list[Change]] = {}
    for change in changes:
        areas.setdefault(change.area, []).append(change)
    return "\n".join("\n".join([area, *(f"  {each}" for each in there)]) for area, there in areas.items())


def to_json(changes: Iterable[Change]) -> str:
    """The changes for a program."""
    return json.dumps({"changes": [change.as_dict() for change in changes]}, ensure_ascii=False, indent=2)


def _facts(manifest: Manifest) -> dict[str, Any]:
    runtime = manifest.runtime
    return {
        "name": manifest.name,
        "version": manifest.version,
        "description": manifest.description,
        "profile": manifest.profile,
        "python": runtime.python,
        "spark": runtime.spark,
        "scala": runtime.scala,
        "java": runtime.java,
        "platform": runtime.platform,
        "gem_bundle": runtime.gem_bundle,
        "dependencies": "in the bundle" if manifest.deps else "installed by the cluster",
        "jar_files": "in the bundle" if manifest.vendored else "fetched by the cluster",
    }


def _pipeline(pipeline: BundlePipeline) -> dict[str, Any]:
    parameters = {
        each.name: {
            "type": each.type,
            **({} if each.required else {"default": each.default}),
            **({"description": each.description} if each.description else {}),
        }
        for each in pipeline.parameters
    }
    return {
        "file": pipeline.file,
        "mode": pipeline.mode,
        "description": pipeline.description,
        "checkpoints": pipeline.checkpoints,
        "parameters": parameters,
        "profiles": pipeline.profiles,
        "secrets": dict.fromkeys(pipeline.secrets, ""),
        "spark": dict(pipeline.spark),
        **{f"{kind}s": _nodes(pipeline, kind) for kind in ("source", "transform", "target")},
    }


def _nodes(pipeline: BundlePipeline, kind: str) -> dict[str, Any]:
    nodes = pipeline.nodes.items()
    return {
        name: {key: value for key, value in node.items() if key != "kind"}
        for name, node in nodes
        if node.get("kind") == kind
    }


def _modules(manifest: Manifest) -> dict[str, str]:
    own = f"{manifest.package}/"
    return {
        file.path: f"{file.size} bytes, {file.sha256[:12]}"
        for file in manifest.contents
        if not file.path.startswith(own)
    }


def _gems(manifest: Manifest) -> dict[str, str]:
    return {f"{gem.kind} {gem.name}": gem.distribution for gem in manifest.gems}


def _distributions(manifest: Manifest) -> dict[str, str]:
    return {each.name: f"{each.version} ({each.sha256[:12]})" for each in manifest.distributions}


def _jars(manifest: Manifest) -> dict[str, str]:
    found = {}
    for jar in manifest.jars:
        name, _, version = jar.coordinate.rpartition(":")
        found[name] = f"{version} ({jar.sha256[:12]})"
    return found


def _compare(
    area: str, old: Mapping[str, Any], new: Mapping[str, Any], path: tuple[str, ...] = ()
) -> Iterator[Change]:
    """The differences of two mappings, as deep as both have mappings; then whether the order differs."""
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key, _ABSENT), new.get(key, _ABSENT)
        way = (*path, key)
        if isinstance(before, dict) and isinstance(after, dict):
            yield from _compare(area, before, after, way)
        elif before is _ABSENT:
            yield Change(area, "added", way, new=_safe(way, after))
        elif after is _ABSENT:
            yield Change(area, "removed", way, old=_safe(way, before))
        elif _differ(before, after):
            yield Change(area, "changed", way, _safe(way, before), _safe(way, after))
    if "options" in path and old.keys() == new.keys() and list(old) != list(new):
        yield Change(area, "changed", (*path, "(order)"), list(old), list(new))


def _differ(one: Any, other: Any) -> bool:
    # 1, 1.0 and true are equal to Python, and different things to a gem.
    return json.dumps(one) != json.dumps(other)


def _safe(path: tuple[str, ...], value: Any) -> Any:
    """The value without what may be a secret; a reference to one is none, nor is a section's name."""
    if isinstance(value, dict):
        return {name: _safe((*path, name), item) for name, item in value.items()}
    if isinstance(value, list):
        return [_safe(path, item) for item in value]
    if isinstance(value, str) and value and any(map(_SECRET.search, path[1:])) and not _is_open(value):
        return HIDDEN
    return value


def _is_open(value: str) -> bool:
    return bool(re.fullmatch(r"\$\{[^{}]*\}", value))


def _shown(value: Any) -> str:
    if value is None or value == "":
        return "nothing" if value is None else ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
