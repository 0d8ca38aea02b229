"""What tests of sessions share: something that looks like a Java and starts nothing, and ports."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from gem_bundle.run.java import Java
from tests.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def java(tmp_path: Path) -> Java:
    """Something that lies in its folder as a Java does."""
    for name in ("bin/java", "lib/server/classes.jsa", "lib/server/libjvm.so"):
        file = tmp_path / "java" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return Java(tmp_path / "java" / "bin" / "java", "17.0.1")


@pytest.fixture
def listening() -> Iterator[int]:
    """A port at which somebody listens, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed() -> int:
    """A port at which nobody listens any more."""
    return free_port()
