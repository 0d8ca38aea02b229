"""Functions and classes that a pipeline names are looked for in their sources, which nobody imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gem_bundle.check.checker import check_file

if TYPE_CHECKING:
    from pathlib import Path

PIPELINE = """
pipeline: p
sources: {{ticks: {{gem: rate}}}}
transforms: {{n: {{gem: {gem}, input: ticks, options: {options}}}}}
targets: {{out: {{gem: console, input: n}}}}
"""
TARGET = """
pipeline: p
sources: {{ticks: {{gem: rate}}}}
targets: {{n: {{gem: {gem}, input: ticks, options: {options}}}}}
"""
STATEFUL = "{{processor: '{0}', group_by: [value], schema: value bigint{1}}}"
JOBS = """
import os, json as codec
from pyspark.sql.streaming import StatefulProcessor
from helping import made as also

raise SystemExit("a check imports nothing")

def clean(ticks, limit=5): ...
def row(row, *, times): ...
def batch(df, batch_id): ...
async def later(ticks): ...
with open("x") as opened: first, *rest = opened
if os.name == "nt":
    def either(): ...
else:
    def either(ticks): ...
@codec.decorated
def decorated(): ...

class P(StatefulProcessor):
    times = 3
    def handleInputRows(self, key, rows, timerValues): ...

class Q(P):
    def __init__(self, minutes, hours=1): ...

class R(Q): ...
class Outer(codec.JSONDecoder): ...
class Writer:
    def process(self, row): ...
"""


def found(tmp_path: Path, text: str) -> list[tuple[str, str, str]]:
    (tmp_path / "jobs_to_check.py").write_text(JOBS)
    file = tmp_path / "p.yaml"
    file.write_text(text)
    diagnostics = check_file(file).diagnostics
    return [
        (d.code, d.severity, d.message.partition("`n`: ")[2])
        for d in diagnostics
        if d.code in {"GB506", "GB507", "GB202"}
    ]


def told(tmp_path: Path, gem: str, options: str) -> list[tuple[str, str, str]]:
    text = PIPELINE if gem in {"python", "stateful"} else TARGET
    return found(tmp_path, text.format(gem=gem, options=options))


@pytest.mark.parametrize(
    ("gem", "options", "message"),
    [
        ("python", "{function: 'jobs_to_check:claen'}", "`jobs_to_check` has no `claen`"),
        (
            "python",
            "{function: 'jobs_to_check:clean', arguments: {limits: 4}}",
            "`jobs_to_check:clean` is called with (ticks, limits) but takes clean(ticks, limit=5): got an "
            "unexpected keyword argument 'limits'",
        ),
        (
            "foreach",
            "{function: 'jobs_to_check:row'}",
            "`jobs_to_check:row` is called with (row) but takes row(row, *, times): missing a required "
            "argument: 'times'",
        ),
        (
            "foreach",
            "{function: 'jobs_to_check:Writer', arguments: {url: x}}",
            "`jobs_to_check:Writer` is called with (url) but takes Writer(): got an unexpected keyword "
            "argument 'url'",
        ),
        (
            "foreach_batch",
            "{function: 'jobs_to_check:batch', rejects: true}",
            "`jobs_to_check:batch` is called with (df, batch_id, reject) but takes batch(df, batch_id): "
            "too many positional arguments",
        ),
        ("stateful", STATEFUL.format("jobs_to_check:S", ""), "`jobs_to_check` has no `S`"),
        (
            "stateful",
            STATEFUL.format("jobs_to_check:P", ", arguments: {minutes: 3}"),
            "`jobs_to_check:P` is called with (minutes) but takes P(): got an unexpected keyword argument "
            "'minutes'",
        ),
        (
            "stateful",
            STATEFUL.format("jobs_to_check:R", ", arguments: {hours: 3}"),
            "`jobs_to_check:R` is called with (hours) but takes R(minutes, hours=1): missing a required "
            "argument: 'minutes'",
        ),
    ],
)
def test_what_is_not_there_or_takes_something_else(
    tmp_path: Path, gem: str, options: str, message: str
) -> None:
    code = "GB506" if "has no" in message else "GB507"
    assert told(tmp_path, gem, options) == [(code, "error", message)]


@pytest.mark.parametrize(
    ("gem", "options"),
    [
        ("python", "{function: 'jobs_to_check:clean', arguments: {limit: 4}}"),
        *(
            ("python", f"{{function: 'jobs_to_check:{name}'}}")
            for name in ("also", "rest", "either", "decorated")
        ),
        ("python", "{function: 'jobs_to_check:codec.loads'}"),
        ("python", "{function: 'textwrap:dedent'}"),
        ("python", "{function: '__main__:anything'}"),
        ("foreach", "{function: 'jobs_to_check:Writer'}"),
        ("stateful", STATEFUL.format("jobs_to_check:Q", ", arguments: {minutes: 3}")),
        ("stateful", STATEFUL.format("jobs_to_check:Outer", ", arguments: {strict: false}")),
    ],
)
def test_what_may_be_right_is_left_alone(tmp_path: Path, gem: str, options: str) -> None:
    assert told(tmp_path, gem, options) == []


@pytest.mark.parametrize(
    "line", ["from os import *", "globals()['claen'] = clean", "def __getattr__(name): ..."]
)
def test_a_module_may_have_names_that_are_not_written_in_it(tmp_path: Path, line: str) -> None:
    (tmp_path / "more_jobs.py").write_text(f"def clean(ticks): ...\n{line}\n")
    assert told(tmp_path, "python", "{function: 'more_jobs:claen'}") == []


def test_a_module_that_is_nowhere_may_be_installed_where_the_pipeline_runs(tmp_path: Path) -> None:
    ((code, severity, message),) = told(tmp_path, "stateful", STATEFUL.format("nope:P", ""))
    assert (code, severity) == ("GB506", "warning")
    assert message == "there is no Python module `nope` beside the pipeline file, nor in this environment"


def test_modules_of_packages(tmp_path: Path) -> None:
    (tmp_path / "own_package").mkdir()
    (tmp_path / "own_package" / "__init__.py").write_text("def of_package(ticks): ...")
    (tmp_path / "own_package" / "deep.py").write_text("def clean(ticks): ...")
    assert told(tmp_path, "python", "{function: 'own_package.deep:clean'}") == []
    assert told(tmp_path, "python", "{function: 'own_package:deep.clean'}") == []
    assert [c for c, *_ in told(tmp_path, "python", "{function: 'own_package.deep:claen'}")] == ["GB506"]
    gone = told(tmp_path, "python", "{function: 'own_package.gone:clean'}")
    assert gone == [
        (
            "GB506",
            "error",
            "there is no Python module `own_package.gone`: `own_package` has none of that name",
        )
    ]
