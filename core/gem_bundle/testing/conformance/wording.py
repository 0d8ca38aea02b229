"""The form of what a gem says: of its findings, and of the errors that it raises on purpose."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from gem_bundle.diagnostics import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.gem import Gem

_CODE = re.compile(r"[A-Z]{2,}\d{3,}")


def wrong_findings(gem: type[Gem[Any]], findings: Iterable[object]) -> Iterator[str]:
    """What is wrong with the form of a gem's findings."""
    for finding in findings:
        if not isinstance(finding, Finding):
            yield f"{finding!r} is no `Finding`"
            continue
        yield from wrong_words(gem, finding.code, finding.message, finding.option)


def wrong_words(gem: type[Gem[Any]], code: str, message: str, option: object) -> Iterator[str]:
    """What is wrong with the form of a finding, or of a `GemError`."""
    said = f"the message {message!r}"
    if not _CODE.fullmatch(code):
        yield f"{said} has the code {code!r}; codes are letters and digits such as `GB503` or `ACME001`"
    elif code.startswith("GB") and code not in _known_codes():
        yield f"{said} has the code {code}, which the catalogue doesn't have; `gem-bundle explain` lists them"
    if len(message.split()) < 3 or "Traceback" in message or message.rstrip().endswith("."):
        yield f"{said} must be a sentence for the user, without a full stop and without a traceback"
    name = option[0] if isinstance(option, tuple) and option else option
    if name is not None and name not in gem.options_type.model_fields:
        yield f"{said} points at `{name}`, which is no option"


@cache
def _known_codes() -> frozenset[str]:
    from gem_bundle.codes import CODES

    return frozenset(CODES)
