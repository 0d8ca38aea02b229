"""What a record leaves out of options: logins in addresses, what signs them, settings that are secrets."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from gem_bundle.pipeline.secrets import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

SECRET = {"secret": True}
"""Stands in a record where the pipeline has a secret."""

ENVIRONMENT = {"environment": True}
"""Stands in a record where the pipeline has a text of an environment variable, which may be a secret."""

_WRITTEN = "written"
_STANDS_IN = "secret"
_REFERENCE = re.compile(r"\$\$\{|\$\{(env|secret):([^{}]*)\}")


def with_text(marker: dict[str, Any], text: str | None) -> dict[str, Any]:
    """A marker that says what stands around the references, so that an edit of it is seen.

    Args:
        marker: `SECRET` or `ENVIRONMENT`.
        text: The text with its references standing in it; None where that isn't known.
    """
    return marker if text is None else marker | {_WRITTEN: text}


def marker_of(value: Any) -> dict[str, Any] | None:
    """`SECRET` or `ENVIRONMENT` where one of them stands, with a text or without; else None.

    Args:
        value: An option's value, or a part of it, as a record has it.
    """
    if not isinstance(value, dict):
        return None
    bare = {key: item for key, item in value.items() if key != _WRITTEN}
    return next((marker for marker in (SECRET, ENVIRONMENT) if marker == bare), None)


def text_of(value: Any) -> str | None:
    """The text of a marker, with its references standing in it; None where there is none.

    Args:
        value: An option's value, or a part of it, as a record has it.
    """
    text = value.get(_WRITTEN) if marker_of(value) is not None else None
    return text if isinstance(text, str) else None


def stood_in_for(value: Any) -> Any:
    """A value as a gem takes it, with something else for what a record doesn't keep.

    Args:
        value: An option's value, as a record has it.
    """

    def made(marker: Any) -> Any:
        text = text_of(marker)
        return _STANDS_IN if text is None else _REFERENCE.sub(_filled, text)

    return _with_markers(value, made)


def filled(value: Any) -> Any:
    """A value as a gem takes it; what nothing is known of stays a marker, which no gem takes for a value.

    Args:
        value: An option's value, as a record has it.
    """
    return _with_markers(value, lambda marker: marker if text_of(marker) is None else stood_in_for(marker))


def shown(value: Any) -> Any:
    """A value for people, with texts as the file has them.

    Args:
        value: An option's value, as a record has it.
    """
    return _with_markers(value, lambda marker: marker if text_of(marker) is None else text_of(marker))


def has_marker(value: Any) -> bool:
    """Whether a part of a value isn't kept.

    Args:
        value: An option's value, as a record has it.
    """
    if marker_of(value) is not None:
        return True
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(has_marker, inner))


def _with_markers(value: Any, made: Callable[[Any], Any]) -> Any:
    """A value with something else in the place of each marker."""
    if marker_of(value) is not None:
        return made(value)
    if isinstance(value, dict):
        return {key: _with_markers(inner, made) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_markers(inner, made) for inner in value]
    return value


def _filled(found: re.Match[str]) -> str:
    kind, name = found[1], found[2]
    if kind is None:
        return "${"
    # Where the environment is the same both sides of a comparison read alike.
    return os.environ.get(name, name) if kind == "env" else re.sub(r"\W", "_", f"secret_{name}")


def as_kept_before(before: Any, value: Any) -> Any:
    """A value without the texts of markers that an older gem-bundle kept none of: they can't be compared.

    Args:
        before: What was kept in its place.
        value: The value, as a record has it.
    """
    if before == value:
        return value
    marker = marker_of(value)
    if marker is not None:
        return marker if before == marker else value
    if isinstance(before, dict) and isinstance(value, dict):
        return {key: as_kept_before(before.get(key), item) for key, item in value.items()}
    if isinstance(before, list) and isinstance(value, list) and len(before) == len(value):
        return [as_kept_before(one, other) for one, other in zip(before, value, strict=True)]
    return value


_RAW = frozenset({"spark_options", "settings", "arguments", "headers"})
# What Spark itself hides of its settings, the logins of Kafka and of Azure, and of services.
_SETTING = re.compile(
    r"secret|passw|passphrase|token(?!i[sz])|access[._-]?key|jaas|credential|account[._-]?key|keystore\.key"
    r"|\.sas\.|(?:private|api|encryption|shared|signing|subscription)[._-]?key"
    r"|authorization|cookie|(?:\A|[._-])(?:auth|jwt|pass|pwd)\Z",
    re.IGNORECASE,
)

_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*"
_WHOLE = re.compile(rf"\s*(?:jdbc:|{_SCHEME}://).*", re.DOTALL | re.IGNORECASE)
_PART = re.compile(rf"(?:\bjdbc:|\b{_SCHEME}://)[^\s'\"`<>]+", re.IGNORECASE)
_CONNECTION = re.compile(r"\w+=[^;]*(?:;\w+=[^;]*)+;?")

# A login may have the slashes that belong into it escaped, or not: behind a host's colon stands a number.
_LOGIN = re.compile(
    rf"\b({_SCHEME})://([^/?#\s]*|[^/?#\s:\[]*:(?!\d*(?:[/,?#]|\Z))\S*?)@",
)
_ORACLE = re.compile(r"(jdbc:oracle:\w+:)[^/@:\s]+/[^@\s]+(?=@)", re.IGNORECASE)
# There the name before `@` is the container.
_CONTAINERS = frozenset({"abfs", "abfss", "wasb", "wasbs"})

# A signature is of all that stands behind the question mark: with another one all of it is another.
_SIGNED = re.compile(r"\?(?:\S*[&;])?(?:[\w.-]*signature|sig)=\S*", re.IGNORECASE)
_PROPERTY = re.compile(
    r"(\A\s*|[?&;,(]\s*)"
    r"([\w.-]*(?:passw|passphrase|pwd|secret|token|credential|signature)[\w.-]*"
    r"|[\w.-]*(?:access|private|api|account|shared|subscription|master|storage)[._-]*key[\w.-]*"
    r"|pass|key|sig|code|auth|appid|jwt)"
    r"(\s*=\s*)([^&;,)\s]+)",
    re.IGNORECASE,
)
# Columns of a row, which a call of a service puts into its address.
_COLUMN = re.compile(r"\{[^{}]*\}")


def without_logins(text: str) -> str:
    """A text without the logins in its addresses and without what signs them.

    What has a secret's name behind an address's question mark is hidden; the rest stays, to be compared.

    Args:
        text: The text: an address, one with addresses in it, or a connection string.
    """
    if "@" not in text and "=" not in text:
        return text
    if _WHOLE.fullmatch(text) or _CONNECTION.fullmatch(text):
        return _cleared(text)
    return _PART.sub(lambda found: _cleared(found[0]), text) if ":" in text else text


def _cleared(address: str) -> str:
    cleared = _ORACLE.sub(r"\1", _LOGIN.sub(_host, address))
    cleared = _SIGNED.sub("", cleared)
    is_called = cleared.lower().startswith("http")

    def hide(found: re.Match[str]) -> str:
        if is_called and _COLUMN.fullmatch(found[4]):
            return found[0]
        return f"{found[1]}{found[2]}{found[3]}{HIDDEN}"

    return _PROPERTY.sub(hide, cleared)


def _host(found: re.Match[str]) -> str:
    container = found[2].partition(":")[0] if found[1].lower() in _CONTAINERS else ""
    return f"{found[1]}://{container}@" if container else f"{found[1]}://"


def withheld(options: Mapping[str, Any], free: Iterable[str] = ()) -> dict[str, Any]:
    """The options of a node as a record keeps them: without logins, and without settings that are secrets.

    Args:
        options: The options by name, as JSON has them.
        free: Those that are mappings with keys of the user's own choice, beside those that are called so.
    """
    raw = _RAW.union(free)
    return {name: _withheld(value, raw, inside=name in raw) for name, value in options.items()}


def _withheld(value: Any, raw: frozenset[str], *, inside: bool) -> Any:
    """A value without them; inside of what is passed on, what is called as secrets are is one."""
    if isinstance(value, str):
        return without_logins(value)
    if isinstance(value, list):
        return [_withheld(item, raw, inside=inside) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        without_logins(key): (marker_of(item) or SECRET)
        if inside and _SETTING.search(key) and _may_be_secret(item)
        else _withheld(item, raw, inside=inside or key in raw)
        for key, item in value.items()
    }


def _may_be_secret(value: Any) -> bool:
    # A switch is none, whatever it is called, and is worth comparing.
    return value is not None and not isinstance(value, bool)
