"""Regression cases: small pipelines over which checker and Spark once differed, or differ on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).with_name("regressions")
# Written in C where PyYAML has that: each run of the tests reads all cases.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Case:
    """One file of the folder `regressions`.

    Args:
        name: Its name.
        why: What it shows.
        expect: By target what both say: ``accepted``, ``streaming``, ``static`` or ``analysis`` (see
            `tests.differential.engine.Verdict`); or the code with which only the checker refuses it.
        values: The pipeline.
    """

    name: str
    why: str
    expect: dict[str, str]
    values: dict[str, Any]


def load_cases() -> list[Case]:
    """All cases, by name."""
    found = []
    for file in sorted(FOLDER.glob("*.yaml")):
        raw = yaml.load(file.read_text(), LOADER)
        found.append(Case(file.stem, raw["why"], raw["expect"], raw["pipeline"]))
    return found
