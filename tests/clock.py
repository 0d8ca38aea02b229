"""A clock of a module's own: what the tests of it do to time, other threads of the process don't notice."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    import pytest


def set_clock(monkeypatch: pytest.MonkeyPatch, module: ModuleType, **functions: Callable[..., Any]) -> None:
    """Give a module another `time`.

    A thread that sleeps in a loop, as the client of a Spark session has one, would else never sleep again.

    Args:
        monkeypatch: Takes it back.
        module: The module, which has `import time`.
        functions: Those that are other ones: `sleep`, `monotonic`.
    """
    monkeypatch.setattr(module, "time", SimpleNamespace(**{**vars(time), **functions}))
