"""Where the server of a run listens, and whom it lets in."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gem_bundle.run.options import ServeOptions

TOKEN = "GEM_BUNDLE_SERVE_TOKEN"  # noqa: S105 (the name of the variable)
_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:\[\]/]+):)?(?P<port>\d{1,5})")


def parse_address(text: str) -> tuple[str, int]:
    """The host and the port of ``[HOST:]PORT``; the host is 127.0.0.1 where none is given.

    Raises:
        ValueError: When it is none.
    """
    found = _ADDRESS.fullmatch(text.strip())
    if found is None or int(found["port"]) > 65535:
        raise ValueError(f"`{text}` is not of the form [HOST:]PORT, as in 8080 or 0.0.0.0:8080")
    return (found["host"] or "127.0.0.1").strip("[]"), int(found["port"])


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def own_names(host: str) -> frozenset[str]:
    """By which names a browser may call this machine.

    Another name in a request's header is one that somebody has pointed at this machine, so that a page of
    theirs can read what it answers.
    """
    # Not the full one: to look that up may take seconds where no name server answers.
    return frozenset({host.lower(), "localhost", socket.gethostname().lower()})


def is_own(header: str, names: frozenset[str]) -> bool:
    """Whether a ``Host`` header calls this machine: by an address, or by one of its names."""
    host = re.sub(r":\d*$", "", header.strip()).strip("[]").lower()
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host in names
    return True


def token_of(options: ServeOptions, environment: Mapping[str, str] | None) -> str:
    """The token that requests have to carry; empty where they need none."""
    return options.token or (os.environ if environment is None else environment).get(TOKEN, "").strip()
