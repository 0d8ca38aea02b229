"""What a gem does outside: nothing while it is checked, and a sentence where there is nobody."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.errors import GemError
from gem_bundle.testing.conformance.suite import GemConformance, fail, fail_for
from gem_bundle.testing.conformance.wording import wrong_findings, wrong_words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from socket import socket


MOST_SECONDS = 60.0
"""The longest timeout that a connection of a preflight may have: somebody waits for the run to start."""

_EVENTS = {
    "open": "opens",
    "os.listdir": "lists",
    "os.scandir": "lists",
    "socket.connect": "connects to",
    "socket.getaddrinfo": "looks up",
    "subprocess.Popen": "starts",
}
_CODE = (".py", ".pyc", ".so", ".pyd")
_watched = threading.local()


@contextmanager
def kept_inside() -> Iterator[list[tuple[str, str]]]:
    """Note what this thread opens while the block runs; Python's own looks for modules don't count.

    Yields:
        Pairs of the method of the gem, as far as it can be told, and what it does.
    """
    _install()
    uses: list[tuple[str, str]] = []
    _watched.uses = uses
    try:
        yield uses
    finally:
        _watched.uses = None


@contextmanager
def kept_short() -> Iterator[list[str]]:
    """Note the connections that this thread opens while the block runs and that may keep it waiting for long.

    What counts is the timeout that they are given, not how long anything takes. A socket that doesn't block
    has its limit elsewhere.

    Yields:
        Each address, with what is wrong about its timeout.
    """
    _install()
    long: list[str] = []
    _watched.long = long
    try:
        yield long
    finally:
        _watched.long = None


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _EVENTS:
        return
    long = getattr(_watched, "long", None)
    if long is not None and event == "socket.connect":
        long += _long_waits(*arguments)
    uses = getattr(_watched, "uses", None)
    if uses is None:
        return
    _watched.uses = None  # what is done here isn't the gem's
    try:
        what = arguments[1] if event == "socket.connect" else arguments[0]
        if not _is_pythons_own(event, what):
            uses.append((_method(), f"{_EVENTS[event]} {what!r}"))
    finally:
        _watched.uses = uses


def _long_waits(connection: socket, address: object) -> Iterator[str]:
    if not isinstance(address, tuple):
        return  # a file of this machine, where somebody listens or nobody does
    timeout = connection.gettimeout()
    if timeout is None or timeout > MOST_SECONDS:
        given = "no timeout" if timeout is None else f"a timeout of {timeout:g} seconds"
        yield f"{address[0]}:{address[1]} with {given}"


def _is_pythons_own(event: str, what: object) -> bool:
    if not event.startswith("o"):
        return False
    if isinstance(what, int):
        return True
    path = str(what)
    if path.endswith(_CODE):
        return True
    frame = sys._getframe(3)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(("importlib", "zipimport", "zoneinfo")):
            return True
        if module.startswith(__package__ or ""):
            return False
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _method() -> str:
    """The method that the suite has called."""
    frame = sys._getframe(2)
    name = "the gem"
    while frame is not None and not frame.f_globals.get("__name__", "").startswith(__package__ or ""):
        name = frame.f_code.co_name
        frame = frame.f_back  # type: ignore[assignment]
    return name


def _install(_installed: list[bool] = []) -> None:  # noqa: B006 (an audit hook stays for good: one is enough)
    if not _installed:
        _installed.append(True)
        sys.addaudithook(_audit)


class OutsideTests(GemConformance):
    """Where the system isn't there, the user is told so."""

    @pytest.mark.spark
    def test_an_unreachable_system_is_a_sentence(self) -> None:
        """The preflight, or else the first use, says what can't be reached; its connections have timeouts."""
        if self.unreachable is None:
            fail(
                "give `unreachable`: options with which the gem's system can't be reached, such as a port "
                "where nobody listens or a folder that isn't there. One with nothing outside waives this test"
            )
        gem = self.made(self.unreachable)
        with kept_short() as long:
            found = _connected(gem)
        problems = [
            f"`connect` connects to {each}: where nobody answers, a run waits; give it one of some seconds"
            for each in dict.fromkeys(long)
        ]
        if found:
            problems += list(wrong_findings(self.gem, found))
            if not any(getattr(finding, "hint", "") for finding in found):
                problems.append(f"`connect` finds {found[0].message!r} and gives no hint what to do about it")
        else:
            error = self._error_of_use(gem)
            problems += list(wrong_words(self.gem, error.code, error.message, error.option))
            if not error.hint:
                problems.append(f"the error {error.message!r} has no hint what to do about it")
        fail_for(problems)

    def _error_of_use(self, gem: Any) -> GemError:  # noqa: RET503 (`fail` raises)
        try:
            self._use_once(gem)
        except GemError as error:
            return error
        except Exception as error:  # noqa: BLE001 (whatever else it is, it is no sentence)
            fail(
                f"`connect` finds nothing, and the use fails with {type(error).__name__}: "
                f"{_first_line(error)}; let `connect` find it, or raise `GemError`"
            )
        fail("`connect` finds nothing, and the use doesn't fail: are the options `unreachable` really that?")


def _connected(gem: Any) -> list[Any]:
    try:
        return list(gem.connect())
    except Exception as error:  # noqa: BLE001 (a preflight finds, it doesn't raise)
        fail(f"`connect` raises {type(error).__name__}: {_first_line(error)}; it is to yield `Finding`s")


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), "")
