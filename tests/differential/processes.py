"""Work in several processes, each with a JVM of its own."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Found = TypeVar("Found")


def in_processes(work: Callable[..., Found], parts: Sequence[tuple[Any, ...]]) -> list[Found]:
    """What comes of each part of some work; one alone is done in this process.

    Args:
        work: Does a part.
        parts: What it is called with for each of them.
    """
    if len(parts) == 1:
        return [work(*parts[0])]
    with ProcessPoolExecutor(len(parts), mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(work, *part) for part in parts]
        return [future.result() for future in futures]


def counted(what: str, work: Callable[..., Counter[str]], parts: Sequence[tuple[Any, ...]]) -> Counter[str]:
    """What the parts of some work have counted together, which is printed.

    Args:
        what: What they have counted.
        work: Does a part.
        parts: What it is called with for each of them.
    """
    tally: Counter[str] = sum(in_processes(work, parts), Counter())
    listed = ", ".join(f"{number} {found}" for found, number in tally.most_common())
    print(f"{tally.total()} {what}: {listed}")
    return tally
