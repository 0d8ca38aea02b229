"""Compare two ways of doing one thing, on a machine that others use too.

Times on a shared machine drift, so nothing is compared with a time from another day: both ways run
in turn, A B B A A B …, and what counts is the median of the ratios of neighbours.
"""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

# Whoever measures coverage of the tests must not measure it in one of the two.
_UNWANTED = ("COV_CORE_", "COVERAGE_", "PYTHONDONTWRITEBYTECODE")


@dataclass(frozen=True)
class Comparison:
    """What came out.

    Args:
        name: Its short name, for `--only`.
        ours: What gem-bundle did, in words.
        theirs: What it is compared with.
        rule: The bound on `value`, in words.
        value: The measured number that the rule is about.
        unit: What it is: ``x`` for a ratio, ``s`` for a difference in seconds, ``s in all`` for
            the seconds of ours.
        bound: The bound.
        at_least: Whether the bound is a lower one.
        our_seconds: The median time of ours.
        their_seconds: The median time of theirs.
        pairs: How many pairs were measured.
    """

    name: str
    ours: str
    theirs: str
    rule: str
    value: float
    unit: str
    bound: float
    at_least: bool
    our_seconds: float
    their_seconds: float
    pairs: int

    @property
    def holds(self) -> bool:
        """Whether the bound is kept."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound


@dataclass(frozen=True)
class Pairs:
    """The times of both ways, pair by pair, in seconds."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Ours by theirs."""
        return median(a / b for a, b in zip(self.ours, self.theirs, strict=True))

    @property
    def speedup(self) -> float:
        """Theirs by ours."""
        return median(b / a for a, b in zip(self.ours, self.theirs, strict=True))

    @property
    def difference(self) -> float:
        """Ours minus theirs, in seconds."""
        return median(a - b for a, b in zip(self.ours, self.theirs, strict=True))

    def compared(
        self,
        name: str,
        ours: str,
        theirs: str,
        *,
        at_most: float | None = None,
        at_least: float | None = None,
        more_seconds: float | None = None,
        seconds: float | None = None,
    ) -> Comparison:
        """The pairs under one of four rules: ours takes at most so many times as long as theirs, is at
        least so many times as fast, takes at most so many seconds more, or at most so many in all.
        """
        if at_most is not None:
            rule, value, unit, bound = f"at most {at_most:g} times as long", self.ratio, "x", at_most
        elif at_least is not None:
            rule, value, unit, bound = f"at least {at_least:g} times as fast", self.speedup, "x", at_least
        elif seconds is not None:
            rule, value, unit, bound = f"at most {seconds:g} s", median(self.ours), "s in all", seconds
        else:
            assert more_seconds is not None
            bound = more_seconds
            rule, value, unit = f"at most {bound:g} s longer", self.difference, "s"
        return Comparison(
            name=name,
            ours=ours,
            theirs=theirs,
            rule=rule,
            value=value,
            unit=unit,
            bound=bound,
            at_least=at_least is not None,
            our_seconds=median(self.ours),
            their_seconds=median(self.theirs),
            pairs=len(self.ours),
        )


def in_turn(ours: Callable[[], float], theirs: Callable[[], float], pairs: int) -> Pairs:
    """Run both ways in turn; each returns the seconds that count. The first pair only warms up."""
    found: list[tuple[float, float]] = []
    for number in range(pairs + 1):
        if number % 2:
            b = theirs()
            a = ours()
        else:
            a = ours()
            b = theirs()
        found.append((a, b))
    return Pairs(tuple(a for a, _ in found[1:]), tuple(b for _, b in found[1:]))


def command_seconds(
    command: Sequence[str | Path],
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    status: int = 0,
) -> float:
    """How long a command takes from its start to its end.

    Args:
        command: What is started.
        environment: What its environment has beside this process's.
        cwd: Where it is started.
        status: The exit status that it has to end with.

    Raises:
        RuntimeError: When it ends with another one, with what it printed.
    """
    began = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=cwd,
        env=clean_environment(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - began
    if done.returncode != status:
        raise RuntimeError(
            f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return seconds


def clean_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a measured process."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_UNWANTED)}
    return {**kept, **(more or {})}
