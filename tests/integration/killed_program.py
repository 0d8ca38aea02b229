"""A command of gem-bundle that ends as by ``kill -9`` at a moment.

``python -m tests.integration.killed_program MODULE:NAME before|behind NUMBER ARGUMENTS…``
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from itertools import count
from typing import Any, NoReturn


def main(where: str, when: str, number: int, arguments: list[str]) -> None:
    """Run the command.

    Args:
        where: A function that it calls, as ``module:name`` or ``module:Class.name``.
        when: Whether it dies ``before`` the function does anything, or ``behind`` that.
        number: At which call.
        arguments: The command's arguments.
    """
    module, _, path = where.partition(":")
    owner: Any = import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    actual = getattr(owner, name)
    calls = count(1)

    def dying(*given: Any, **named: Any) -> Any:
        call = next(calls)  # which it stays, whatever other threads call meanwhile
        if call == number and when == "before":
            die()
        found = actual(*given, **named)
        if call == number:
            die()
        return found

    setattr(owner, name, dying)
    from gem_bundle.cli import entry

    sys.argv[1:] = arguments
    entry()


def die() -> NoReturn:
    """End this process without another step."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError  # it is dead


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
