"""What a run is asked from outside: small files beside its record, which it takes away."""

from __future__ import annotations

import json
import re
import secrets
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, get_args

from gem_bundle.runs.process import this_process

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.files import Folder

Action = Literal["stop", "resume", "plan"]
_PREFIX = "ask-"
_SUFFIX = ".json"
_ANSWER = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Request:
    """Something that a run is asked to do.

    Args:
        action: ``stop``, ``resume``, or ``plan`` for Spark's plan of a query.
        target: The id of the target whose query is meant; empty for the whole run.
        now: Don't wait for the end of the running micro-batch.
        by: Who asks.
        answer: Under which name the answer is looked for, 16 hexadecimal digits; empty where there is none.
    """

    action: Action
    target: str = ""
    now: bool = False
    by: str = ""
    answer: str = ""


def ask(folder: Folder, run: str, request: Request) -> None:
    """Leave a request for a run.

    Args:
        folder: The folder with the records.
        run: The id of the run.
        request: What it is asked.
    """
    # By the time, so that the run takes them in the order in which they were asked.
    name = f"{_PREFIX}{run}-{time.time_ns():020}-{secrets.token_hex(4)}{_SUFFIX}"
    folder.write(name, json.dumps(asdict(request)).encode())


def take(folder: Folder, run: str) -> list[Request]:
    """Take away what a run was asked, in order.

    Args:
        folder: The folder with the records.
        run: The id of the run.
    """
    found = []
    for name in _asked(folder.names(), run):
        request = _read(folder, name)
        folder.remove(name)
        if request is not None:
            found.append(request)
    return found


def answer(folder: Folder, run: str, request: Request, text: str) -> None:
    """Leave the answer to a request.

    Args:
        folder: The folder with the records.
        run: The id of the run.
        request: What it was asked.
        text: The answer.
    """
    folder.write(_answer_name(run, request), text.encode())


def take_answer(folder: Folder, run: str, request: Request) -> str | None:
    """Take away the answer to a request; None while there is none.

    Args:
        folder: The folder with the records.
        run: The id of the run.
        request: What it was asked.
    """
    name = _answer_name(run, request)
    try:
        text = folder.read(name).decode()
    except FileNotFoundError:
        return None
    folder.remove(name)
    return text


def _answer_name(run: str, request: Request) -> str:
    return f"answer-{run}-{request.answer}.txt"


def is_asked(folder: Folder, run: str) -> bool:
    """Whether a run was asked something that it hasn't taken away yet."""
    return bool(_asked(folder.names(), run))


def who() -> str:
    """Who asks, as far as it can be told."""
    return f"`gem-bundle` on {this_process().host}"


def _asked(names: Iterable[str], run: str) -> list[str]:
    return sorted(name for name in names if name.startswith(f"{_PREFIX}{run}-") and name.endswith(_SUFFIX))


def _read(folder: Folder, name: str) -> Request | None:
    """A request; nothing where somebody put something else there."""
    try:
        content = json.loads(folder.read(name))
        request = Request(**content)
    except (FileNotFoundError, ValueError, TypeError):
        return None
    if request.action == "plan" and not (
        isinstance(request.answer, str) and _ANSWER.fullmatch(request.answer)
    ):
        return None
    texts = isinstance(request.target, str) and isinstance(request.by, str) and isinstance(request.now, bool)
    return request if texts and request.action in get_args(Action) else None
