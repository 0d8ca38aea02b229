"""What tests of a session's start share: something that looks like a Java and starts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gem_bundle.run.java import Java

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def java(tmp_path: Path) -> Java:
    """Something that lies in its folder as a Java does."""
    for name in ("bin/java", "lib/server/classes.jsa", "lib/server/libjvm.so"):
        file = tmp_path / "java" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return Java(tmp_path / "java" / "bin" / "java", "17.0.1")
