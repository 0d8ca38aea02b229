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


def with_stand_ins(text: str, filled_in: str, variables: Iterable[str]) -> str:
    """A text as a check has it: with stand-ins for its secrets, and its variables filled in.

    Args:
        text: The text with its references standing in it.
        filled_in: The same one, with the values of all of them.
        variables: The values of the environment variables that the pipeline refers to.
    """
    values = "|".join(re.escape(value) for value in sorted(variables, key=len, reverse=True))
    pattern, end = "", 0
    for found in _REFERENCE.finditer(text):
        pattern += re.escape(text[end : found.start()])
        pattern += r"\$\{" if found[1] is None else f"({values})" if found[1] == "env" else "(.*)"
        end = found.end()
    whole = re.fullmatch(pattern + re.escape(text[end:]), filled_in, re.DOTALL)
    groups = iter(whole.groups() if whole is not None else ())

    def stand_in(found: re.Match[str]) -> str:
        value = None if found[1] is None else next(groups, None)
        return value if found[1] == "env" and value is not None else _filled(found)

    return _REFERENCE.sub(stand_in, text)


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
    r"secret|passw|passcode|passphrase|token(?!i[sz])|access[._-]?key|jaas|credential|account[._-]?key"
    r"|keystore\.key|\.sas\."
    r"|(?:private|pvt|api|auth|encryption|shared|signing|subscription|functions|master|cosmos)[._-]?key"
    r"|authorization|cookie|(?:\A|[._-])(?:auth|jwt|pass|pwd)\Z",
    re.IGNORECASE,
)

_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*"
_WHOLE = re.compile(rf"\s*(?:jdbc:|{_SCHEME}://).*", re.DOTALL | re.IGNORECASE)
_PART = re.compile(rf"(?:\bjdbc:|\b{_SCHEME}://)[^\s'\"`<>]+", re.IGNORECASE)
# A value in braces or quotes may have what else stands between two of them.
_SETTINGS = r"\w[\w .-]*=(?:\{[^{}]*\}[^;]*|\"[^\"]*\"[^;]*|[^;{\"][^;]*)?"
_CONNECTION = re.compile(rf"{_SETTINGS}(?:;{_SETTINGS})+;?")
_KEYWORD = r"\w+\s*=\s*(?:'(?:[^'\\]|\\.)*'|[^\s'=]+=*)"
_KEYWORDS = re.compile(rf"\s*{_KEYWORD}(?:\s+{_KEYWORD})+\s*", re.DOTALL)

# Few texts have a login in them: these are compiled when one does.
# A login may have the slashes that belong into it escaped, or not: behind a host's colon stands a number.
_LOGIN = rf"\b({_SCHEME})://([^/?#\s]*|[^/?#\s:\[]*:(?!\d*(?:[/,?#]|\Z))\S*?)@"
_ORACLE = r"(?i)(jdbc:oracle:\w+:)(?:\"[^\"]*\"|[^/@:\s\"]+)/(?:\"[^\"]*\"|[^@\s\"][^@\s]*)(?=@)"
# There the name before `@` is the container.
_CONTAINERS = frozenset({"abfs", "abfss", "wasb", "wasbs"})

# A signature is of all that stands behind the question mark: with another one all of it is another.
_SIGNED = r"(?i)\?(?:\S*[&;])?(?:[\w.-]*signature|sig)=\S*"
_LONG_NAME = (
    r"[\w.-]*(?:passw|passcode|passphrase|pwd|secret|token|credential|signature)[\w.-]*"
    r"|[\w.-]*(?:access|private|pvt|api|auth|account|shared|subscription|functions|master|cosmos|storage)"
    r"[._-]*key[\w.-]*"
)
_NAME = rf"({_LONG_NAME}|pass|pat|key|sig|code|auth|appid|jwt)"
_QUOTED = r"\{(?:[^{}]|\}\})*\}|\"(?:[^\"]|\"\")*\""
_PROPERTY = rf"(?i)(\A\s*|[?&;,(#]\s*){_NAME}(\s*=\s*)([^&;,)\s]+)"
# In what is no URL of the web a value may have spaces, and others, up to the next semicolon.
_SPACED = (
    rf"(?i)(\A\s*|;\s*){_NAME}(\s*=\s*)({_QUOTED}|[^\s;](?:[^;]*[^\s;])?)"
    rf"|([?&,(#]\s*){_NAME}(\s*=\s*)({_QUOTED}|[^\s&;,)](?:[^&;,)]*[^\s&;,)])?)"
)
_WORD = rf"(?is)(\A\s*|\s)({_LONG_NAME})(\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s']+)"
# Columns of a row, which a call of a service puts into its address.
_COLUMN = r"\{[^{}]*\}"


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
    if _KEYWORDS.fullmatch(text):
        return re.sub(_WORD, rf"\1\2\3{HIDDEN}", text)
    return _PART.sub(lambda found: _cleared(found[0]), text) if ":" in text else text


def _cleared(address: str) -> str:
    cleared = re.sub(_ORACLE, r"\1", re.sub(_LOGIN, _host, address))
    cleared = re.sub(_SIGNED, "", cleared)
    is_called = cleared.lower().startswith("http")

    def hide(found: re.Match[str]) -> str:
        before, name, equals, value = [part for part in found.groups() if part is not None]
        if is_called and re.fullmatch(_COLUMN, value):
            return found[0]
        return f"{before}{name}{equals}{HIDDEN}"

    return re.sub(_PROPERTY if is_called else _SPACED, hide, cleared)


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
