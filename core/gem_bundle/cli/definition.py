"""A pipeline file read only as far as where its checkpoints lie and what its targets are called."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from gem_bundle.cli.output import print_diagnostics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.pipeline.document import Document
    from gem_bundle.pipeline.model import Definition

WRONG = 1
"""The exit status where the file can't be read, or which run or checkpoint is meant isn't sure."""

_PLACES = ("pipeline", "checkpoints")
_VALUES = ("parameters", "profiles")
_OF_TARGETS = ("was", "group")
_PARAMETER = re.compile(r"(?<!\$)\$\{\s*(\w+)\s*\}")


class Read(NamedTuple):
    """A pipeline file as far as runs and checkpoints are found by it.

    Args:
        definition: The pipeline, also one that `check` would refuse; None where there are errors.
        errors: What makes it unsure which run or which checkpoint is meant.
        status: The exit status that goes with the errors; 0 without one.
    """

    definition: Definition | None
    errors: tuple[Diagnostic, ...] = ()
    status: int = 0


def read_definition(file: str, parameters: Mapping[str, str], profile: str | None) -> Definition:
    """The definition by which the runs of a pipeline are found; else the command ends here.

    Args:
        file: The pipeline file.
        parameters: Values for its parameters.
        profile: The profile to use.
    """
    found = look_up(file, parameters, profile)
    if found.definition is None:
        print_diagnostics(found.errors)
        raise SystemExit(found.status)
    return found.definition


def look_up(
    file: str,
    parameters: Mapping[str, str],
    profile: str | None,
    checkpoints_of: Sequence[str] | None = None,
) -> Read:
    """Read a pipeline, whatever is wrong with it that doesn't decide which run or checkpoint is meant.

    Args:
        file: The pipeline file.
        parameters: Values for its parameters.
        profile: The profile to use.
        checkpoints_of: The ids of the targets whose checkpoints are looked at, none for all; None where only
            the place of the pipeline's runs matters.
    """
    from gem_bundle.diagnostics import in_order
    from gem_bundle.pipeline.loader import LoadOptions, load_document, read_file

    document = read_file(file)
    loaded = load_document(document, LoadOptions(parameters, profile))
    if loaded.definition is None:
        return Read(None, tuple(in_order(loaded.diagnostics)), WRONG)
    unread = loaded.broken.intersection(checkpoints_of or ())
    deciding = _Deciding(document, parameters, profile, checkpoints_of, unread)
    errors = tuple(in_order(found for found in loaded.diagnostics if deciding.has(found)))
    return Read(None, errors, WRONG) if errors else Read(loaded.definition)


class _Deciding:
    """What of a file decides which run or which checkpoint is meant."""

    def __init__(
        self,
        document: Document,
        parameters: Mapping[str, str],
        profile: str | None,
        checkpoints_of: Sequence[str] | None,
        unread: frozenset[str],
    ) -> None:
        self._document = document
        self._given = parameters
        self._profile = profile
        self._chosen = checkpoints_of
        self._unread = unread
        self._keys = _PLACES if checkpoints_of is None else (*_PLACES, "mode")
        texts = [document.values.get(key) for key in self._keys]
        targets = document.values.get("targets")
        for name, target in targets.items() if isinstance(targets, dict) else ():
            if self._is_chosen(name) and isinstance(target, dict):
                texts += [target.get(key) for key in _OF_TARGETS]
        self._names = set(_names(texts))

    def has(self, found: Diagnostic) -> bool:
        """Whether something that is wrong is wrong with that."""
        if not found.is_error:
            return False
        if found.code == "GB008":  # what comes behind it isn't filled in any more
            return True
        if not found.path:
            # A key that is missing at the top can only be the pipeline's name.
            return found.code == "GB006" or self._is_near(found.place.line)
        section, *rest = found.path
        if section == "parameters":
            # Without a name it is what was given for one that there isn't.
            return rest[0] in {*self._names, *self._given} if rest else bool(self._given or self._names)
        if section == "profiles":
            return self._is_of_the_profile(found.code, rest)
        if section == "targets":
            if rest and rest[0] in self._unread:
                return True
            return len(rest) > 1 and self._is_chosen(rest[0]) and rest[1] in _OF_TARGETS
        return section in self._keys or (len(found.path) == 1 and self._is_misspelt(found))

    def _is_chosen(self, target: str | int) -> bool:
        return self._chosen is not None and (not self._chosen or target in self._chosen)

    def _is_of_the_profile(self, code: str, rest: Sequence[str | int]) -> bool:
        if self._profile is None or (rest and rest[0] != self._profile):
            return False
        # One that it sets and that there isn't may be meant for one that decides.
        return len(rest) < 2 or code == "GB010" or rest[1] in self._names

    def _is_misspelt(self, found: Diagnostic) -> bool:
        """Whether a key that is unknown at the top of the file seems to be one that decides."""
        from gem_bundle.diagnostics import nearest
        from gem_bundle.pipeline.model import PipelineShape

        near = nearest(str(found.path[0]), PipelineShape.model_fields) if found.code == "GB004" else None
        return near in {*self._keys, *_VALUES}

    def _is_near(self, line: int) -> bool:
        """Whether a line of the file is one of those with what decides, for what is wrong with it as YAML."""
        root = self._document.root
        pairs = root.pairs or [] if root is not None else []
        before = [key for key, _ in pairs if key.line <= line]
        last = max((key.line for key in before), default=0)
        return any(key.line == last and key.scalar in {*self._keys, *_VALUES} for key in before)


def _names(value: Any) -> Iterator[str]:
    """The names of the parameters that a value refers to."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _names(item)
    elif isinstance(value, str):
        yield from _PARAMETER.findall(value)
