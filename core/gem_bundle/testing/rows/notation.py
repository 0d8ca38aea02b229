"""Values as YAML in one line, as people write rows in tests."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_](?:[\w ./-]*[\w./-])?", re.ASCII)
# What some YAML parser or other takes for something else than a text.
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off"})
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def flow(value: Any) -> str:
    """A value as YAML in one line, that reads back as the same value.

    Args:
        value: What YAML has, and `Decimal`.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{text(str(k))}: {flow(v)}' for k, v in value.items())}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(flow, value))}]"
    return str(value)


def text(value: str) -> str:
    """A text as YAML: in quotes unless it is words that nothing takes for something else."""
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return f'"{"".join(map(_escaped, value))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    number = ord(character)
    if number >= 1 << 16:
        return f"\\U{number:08X}"
    return f"\\x{number:02X}" if number < 1 << 8 else f"\\u{number:04X}"


def _float(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    return repr(value)
