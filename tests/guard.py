"""What a test may start, by its marks: one without marks starts nothing, and so is fast wherever it runs.

`scripts/test --fast` runs the tests without these marks. How long a test takes depends on the machine; what it
starts doesn't, so that is what decides on the marks, and a test that starts more than they say fails on the spot.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

# Whichever of them a test has, it may start programs and talk to others: that is where it stops to be fast.
MARKS: Final = ("spark", "kafka", "programs", "network", "servers")

STARTING: Final = {
    "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.system",
}  # fmt: skip

# Python tells of some fifty events a test, and of these few something can be learned.
TELLING: Final = STARTING | {
    "subprocess.Popen", "open", "socket.bind", "socket.connect", "socket.getaddrinfo",
}  # fmt: skip


def started_by(event: str, arguments: Sequence[Any]) -> str | None:
    """What an event of Python's audit starts, if it starts something.

    Args:
        event: Its name.
        arguments: What Python says about it.
    """
    if event == "subprocess.Popen":
        return _program(arguments[1])
    if event in STARTING:
        return f"a process ({event})"
    if event == "open":
        path, mode, _ = arguments
        if isinstance(mode, str) and "w" in mode and isinstance(path, str) and path.endswith("pyvenv.cfg"):
            return f"a virtual environment ({path})"
    elif event == "socket.bind":
        address = arguments[1]
        # So urllib3 tries, when it is imported, whether there is IPv6.
        if isinstance(address, tuple) and address[:2] != ("::1", 0):
            return f"a server (on {address[0] or 'all addresses'})"
    elif event == "socket.connect":
        address = arguments[1]
        if isinstance(address, tuple) and not _is_here(address[0]):
            return f"a connection to {address[0]}"
    elif event == "socket.getaddrinfo" and not _is_here(arguments[0]):
        return f"a look for the address of {arguments[0]}"
    return None


def _program(command: Any) -> str:
    words = [command] if isinstance(command, str | bytes | os.PathLike) else command
    return f"a program ({' '.join(map(os.fsdecode, words))[:200]})"


def _is_here(host: str | bytes | None) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    if name in {None, "", "localhost"}:
        return True
    try:
        address = ip_address(str(name))
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


class Guard:
    """Fails a test that starts something and has no mark for it.

    A fixture that tests share is started in the test that asks first, and counts for all that ask later.
    """

    def __init__(self) -> None:
        self._heard: list[str] | None = None
        self._refusing = False
        self._fixtures: list[pytest.FixtureDef[Any]] = []
        self._shared: dict[tuple[str, str], str] = {}
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in TELLING or self._heard is None:
            return
        started = started_by(event, arguments)
        if started is None:
            return
        for fixture in self._fixtures:
            if fixture.scope != "function":
                self._shared.setdefault((fixture.baseid, fixture.argname), started)
        if self._refusing:
            self._heard.append(started)
            raise pytest.fail.Exception(_refusal(started), pytrace=True)

    @contextmanager
    def _listening(self, *, refusing: bool) -> Iterator[None]:
        heard: list[str] = []
        self._heard, self._refusing = heard, refusing
        try:
            yield
        finally:
            self._heard = None
        # It was refused in a thread, or something has caught it.
        if heard:
            pytest.fail(_refusal(heard[0]), pytrace=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, Any, Any]:
        """See to it that nothing is started by what is only collected."""
        self._heard, self._refusing = [], True
        try:
            return (yield)
        finally:
            self._heard = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Listen to what a test's fixtures start, and know what those started that it shares."""
        refusing = not is_marked(item)
        # A parameter that a test is given itself is no fixture, though it may have the name of one.
        given = item.callspec.params if hasattr(item, "callspec") else {}
        names = set(getattr(item, "fixturenames", ())) - set(given) if refusing else set()
        for (base, name), started in self._shared.items():
            if name in names and item.nodeid.startswith(base):
                pytest.fail(f"{_refusal(started)} The fixture {name!r} does it.", pytrace=False)
        with self._listening(refusing=refusing):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Listen to what a test starts itself. What is ended after it may belong to others that ran before."""
        with self._listening(refusing=not is_marked(item)):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        """Know which fixture it is that starts something."""
        self._fixtures.append(fixturedef)
        try:
            return (yield)
        finally:
            self._fixtures.pop()


def is_marked(item: pytest.Item) -> bool:
    """Whether a test may start something."""
    return any(item.get_closest_marker(mark) for mark in MARKS)


def _refusal(started: str) -> str:
    marks = ", ".join(f"@pytest.mark.{mark}" for mark in MARKS)
    return f"This test starts {started}: it needs one of the marks {marks}."
