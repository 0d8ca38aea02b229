"""Hostile pipeline files end in diagnostics: in little memory, and without a traceback.

Each is made from a seed by one of the makers in `hostile.py` (bytes, structure, depth, numbers, aliases,
references, names, control characters, very many nodes or keys, texts that are hard on an option's check).
`scripts/bench --check` is where it is measured how soon.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gem_bundle.check.checker import check_file
from gem_bundle.pipeline.document import MAX_BYTES, MAX_TEXT
from gem_bundle.pipeline.loader import LoadOptions
from gem_bundle.pipeline.model import MAX_INPUTS, MAX_NODES
from gem_bundle.pipeline.references import MAX_REFERENCES
from gem_bundle.plugins import load_registry
from tests.core import hostile
from tests.core.hostile import MAKERS, MEGABYTES, Result, hostile_file
from tests.samples import examples, seed

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNT = examples(150, 10_000)
SEED = seed()
BATCH = 500
ROOT = Path(__file__).parents[3]


COMMAND = (sys.executable, "-m", "tests.core.hostile")


def results(first: int, count: int) -> Iterator[Result]:
    """What a process finds that checks some of the files; of one that it dies of, that it did."""
    with subprocess.Popen(
        [*COMMAND, str(SEED), str(first), str(count)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        begun = ended = first - 1
        for line in process.stdout:
            if line.startswith("["):
                yield Result(*json.loads(line))
                ended = begun
            else:
                begun = int(line)
        problem = process.stderr.read()
    if process.returncode or ended < first + count - 1:
        assert begun > ended, problem
        kind, _ = hostile_file(SEED, begun)
        yield Result(
            begun, kind, 0.0, 0.0, 0, f"the process ended with {process.returncode}: {problem[-500:]}"
        )


def all_results() -> Iterator[Result]:
    """The results of all files; a process that dies is followed by another one."""
    done = 0
    while done < COUNT:
        for result in results(done, min(BATCH, COUNT - done)):
            yield result
            done = result.index + 1


@pytest.mark.programs
def test_hostile_files_end_in_diagnostics(capsys: pytest.CaptureFixture[str]) -> None:
    found = list(all_results())
    largest = max(found, key=lambda result: result.megabytes)
    with capsys.disabled():
        print(
            f"\n{len(found):,} hostile files of the seed {SEED}: at most {largest.megabytes:.0f} MB; "
            f"{sum(result.diagnostics for result in found):,} diagnostics"
        )

    assert [result for result in found if result.problem] == []
    assert [result for result in found if result.megabytes > MEGABYTES] == []
    assert [result.index for result in found] == list(range(COUNT))
    for kind in MAKERS:
        assert any(result.diagnostics for result in found if result.kind == kind), kind


def test_a_file_can_be_made_again() -> None:
    # Whatever was made in between.
    made = [hostile_file(7, index) for index in range(8 * len(MAKERS))]
    assert [hostile_file(7, index) for index in range(len(made))] == made
    assert hostile_file(7, 0)[1] != hostile_file(8, 0)[1]


def test_what_goes_wrong_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*arguments: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(hostile, "check_file", fail)
    hostile.main(["7", "0", "1"], tmp_path)

    number, line = capsys.readouterr().out.splitlines()
    assert number == "0"
    assert Result(*json.loads(line)).problem == "RecursionError: too deep"


# What the limits are for, each on its own


def pipeline(**parts: str) -> str:
    known = {"pipeline": "p", "sources": "{s: {gem: rate}}", "targets": "{t: {gem: noop, input: s}}"}
    return "".join(f"{key}: {value}\n" for key, value in {**known, **parts}.items())


NODES = ", ".join(f"n{n}: {{gem: limit, input: s, options: {{rows: 1}}}}" for n in range(MAX_NODES))
INPUTS = ", ".join(["s"] * MAX_INPUTS)
UNKNOWN = ", ".join(f"n{n}: {{gem: limit, input: m{n}}}" for n in range(MAX_NODES - 10))
BIG_SPARK = ", ".join(f"k{n}: []" for n in range(20_000))
SELECTS = ", ".join(
    f"n{n}: {{gem: select, input: n{n - 1}, options: {{columns: [value]}}}}" for n in range(1, 900)
)


LIMITS = [
    pytest.param(f"a: {'x' * MAX_BYTES}", "GB008", id="a large file"),
    pytest.param(pipeline(description="x" * (MAX_TEXT + 1)), "GB008", id="a long text"),
    pytest.param(pipeline(transforms=f"{{{NODES}}}"), "GB008", id="many nodes"),
    pytest.param(
        pipeline(transforms=f"{{u: {{gem: union, inputs: [{INPUTS}]}}}}"), "GB008", id="many inputs"
    ),
    pytest.param(pipeline(transforms=f"{{{UNKNOWN}}}"), "GB101", id="many unknown inputs"),
    pytest.param(
        pipeline(transforms=f"{{n0: {{gem: limit, input: s, options: {{rows: 1}}}}, {SELECTS}}}"),
        "GB103",
        id="a long chain",
    ),
    pytest.param(pipeline(description="${nope}" * 7_000), "GB010", id="many references"),
    pytest.param(
        pipeline(**{f"x{n}": "${nope}" * 5_000 for n in range(MAX_REFERENCES // 5_000 + 1)}),
        "GB008",
        id="too many references",
    ),
    pytest.param(
        pipeline(parameters=f"{{a: {'x' * 40_000}}}", description="${a}${a}"),
        "GB008",
        id="a text that grows",
    ),
    pytest.param(pipeline(spark=f"{{{BIG_SPARK}}}"), "GB005", id="many wrong values"),
    pytest.param(pipeline(version="1" * 40_000 + "!"), "GB005", id="a version hard to refuse"),
    pytest.param(pipeline(targets="{" * 200_000), "GB008", id="deep"),
    pytest.param(pipeline(targets=f"{{t: {{gem: {'x' * 40_000}, input: s}}}}"), "GB201", id="a long name"),
]


@pytest.mark.parametrize(("text", "code"), LIMITS)
def test_a_limit(text: str, code: str, tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(text)

    checked = check_file(file, LoadOptions(environment={}), load_registry({}))

    assert code in {diagnostic.code for diagnostic in checked.diagnostics}


@pytest.mark.programs
def test_limits_are_met_in_little_memory(tmp_path: Path) -> None:
    """In a process of their own, as for users: one of tests has much to trace, and may measure coverage."""
    files = [tmp_path / f"{limit.id}.yaml" for limit in LIMITS]
    for file, limit in zip(files, LIMITS, strict=True):
        file.write_text(str(limit.values[0]))

    lines = subprocess.run(
        [*COMMAND, "--files", *files], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()

    found = [Result(*json.loads(line)) for line in lines if line.startswith("[")]
    assert [result.kind for result in found] == [limit.id for limit in LIMITS]
    assert [result for result in found if result.problem or result.megabytes > MEGABYTES] == []


@pytest.mark.programs
def test_the_memory_is_that_of_the_process(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(pipeline())
    large = f"import subprocess; large = bytearray({2 * MEGABYTES} << 20); subprocess.run({[*COMMAND, '--files', str(file)]})"

    lines = subprocess.run(
        [sys.executable, "-c", large], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()

    assert 10 < Result(*json.loads(lines[1])).megabytes < MEGABYTES


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ("input: ''", "GB101"),
        ("input: 5, inputs: [s]", "GB005"),
        ("input: s, inputs: 5", "GB005"),
        ("inputs: ''", "GB005"),
        ("input: null, inputs: null", "GB005"),
        ("input: null, inputs: [null]", "GB005"),
        ("input: '', inputs: ['']", "GB005"),
        ("input: .", "GB101"),
        ("input: [s]", "GB005"),
    ],
)
def test_inputs_that_are_none(inputs: str, code: str, tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(pipeline(transforms=f"{{l: {{gem: limit, {inputs}, options: {{rows: 1}}}}}}"))

    checked = check_file(file, LoadOptions(environment={}), load_registry({}))

    assert code in {diagnostic.code for diagnostic in checked.diagnostics}
