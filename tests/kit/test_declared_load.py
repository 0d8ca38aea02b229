"""Files of declared tests: what they say, and all that is wrong with them, without a JVM."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from gem_bundle.codes import CODES
from gem_bundle.diagnostics import Place
from gem_bundle.errors import PipelineError
from gem_bundle.testing.declared.data import expected_rows, read_rows
from gem_bundle.testing.declared.load import DeclaredTest, Failure, TestFile, load_tests
from gem_bundle.testing.declared.run import prepare_test

if TYPE_CHECKING:
    from pathlib import Path

PIPELINE = """
    pipeline: clicks
    sources:
      ticks: {gem: rate}
    targets:
      screen: {gem: console, input: ticks}
"""

WHOLE = """
    profile: dev
    parameters: {topic: clicks, days: 7}
    environment: {PORT: 8080}
    secrets: {kafka/user: me}
    spark: {spark.sql.shuffle.partitions: 2}
    replace:
      pages: {rows: [{page: home}], schema: page string}
      old: {gem: rate}
    x-row: &row {value: 1}

    tests:
      ticks arrive:
        description: One after the other.
        profile: prod
        parameters: {days: 1}
        secrets: {kafka/password: "1234"}
        replace:
          old: {real: true}
        targets: [screen]
        steps:
          - description: The first ones.
            add:
              ticks: [*row, [2026-01-05, 2]]
              more: {file: more.csv, schema: {id: int}}
              made: {generate: {rows: 10, seed: 3, columns: {id: {start: 1}}}}
              given: {rows: [{id: 1}]}
            expect:
              screen: [{value: 1}]
              other: {rows: [], ordered: true, columns: subset, count: 0, schema: value bigint}
            watermark: "2026-01-05 09:00:00"
          - restart: true
            watermark: {screen: "2026-01-05 10:00:00"}
          - fails: GB507
          - fails: {code: GB508, message: boom}

      it can't start:
        fails: GB301
"""


def load(folder: Path, text: str, pipeline: str = PIPELINE) -> TestFile:
    (folder / "clicks.yaml").write_text(dedent(pipeline), encoding="utf-8")
    (folder / "clicks.test.yaml").write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    return load_tests(folder / "clicks.test.yaml")


@pytest.fixture
def whole(tmp_path: Path) -> TestFile:
    found = load(tmp_path, WHOLE)
    assert found.diagnostics == ()
    return found


def test_the_tests_come_in_the_order_of_the_file(whole: TestFile) -> None:
    assert [test.name for test in whole.tests] == ["ticks arrive", "it can't start"]
    assert [test.place.line for test in whole.tests] == [12, 36]


def test_what_a_test_says_wins_over_what_its_file_says(whole: TestFile) -> None:
    first, second = whole.tests

    assert first.profile == "prod"
    assert first.parameters == {"topic": "clicks", "days": 1}
    assert first.environment == {"PORT": "8080"}
    assert first.secrets == {"kafka/user": "me", "kafka/password": "1234"}
    assert first.spark == {"spark.sql.shuffle.partitions": 2}
    assert first.replace["old"].shape.real
    assert second.profile == "dev"
    assert second.parameters == {"topic": "clicks", "days": 7}
    assert second.replace["old"].shape.gem == "rate"


def test_rows_of_a_replaced_node_are_data(whole: TestFile) -> None:
    test = whole.tests[0]
    data = test.replace["pages"].data

    assert data is not None
    assert data.shape.rows == [{"page": "home"}]
    assert data.shape.schema == "page string"
    assert test.document.place((*data.path, 0)).line == 7
    assert test.replace["old"].data is None


def test_a_step_has_rows_from_everywhere(whole: TestFile) -> None:
    test = whole.tests[0]
    add = test.steps[0].add

    assert add["ticks"].shape.rows == [{"value": 1}, ["2026-01-05", 2]]
    assert test.document.place((*add["ticks"].path, 1)).line == 23
    assert add["given"].shape.rows == [{"id": 1}]
    assert test.document.place((*add["given"].path, 0, "id")) == Place(test.file, 26, 31)
    assert (add["more"].shape.file, add["more"].shape.schema) == ("more.csv", "`id` int")
    generated = add["made"].shape.generate
    assert generated is not None
    assert (generated.rows, generated.seed, generated.columns) == (10, 3, {"id": {"start": 1}})


def test_a_step_says_what_is_expected(whole: TestFile) -> None:
    test = whole.tests[0]
    screen, other = test.steps[0].expect.values()

    assert screen.expected(expected_rows(screen, test)).rows == [{"value": 1}]
    assert screen.place == Place(test.file, 28, 11)
    expected = other.expected(expected_rows(other, test))
    assert expected.rows == []
    assert expected.ordered
    assert expected.subset
    assert expected.count == 0
    assert expected.schema == "value bigint"
    assert test.steps[0].watermark == {None: "2026-01-05 09:00:00"}
    assert test.steps[1].watermark == {"screen": "2026-01-05 10:00:00"}
    assert test.steps[1].restart
    assert not test.steps[0].restart


def test_a_step_and_a_test_say_how_they_fail(whole: TestFile) -> None:
    first, second = whole.tests

    assert first.steps[2].fails == Failure("GB507", None, Place(first.file, 33, 9))
    assert first.steps[3].fails == Failure("GB508", "boom", Place(first.file, 34, 9))
    assert [(step.number, step.place.line) for step in first.steps] == [(1, 21), (2, 31), (3, 33), (4, 34)]
    assert second.fails == Failure("GB301", None, Place(first.file, 37, 5))
    assert second.steps == ()


TEST = """
    tests:
      ticks arrive:
        steps:
          - expect: {screen: {count: 0}}
"""


def test_the_pipeline_is_the_file_beside_it(tmp_path: Path) -> None:
    assert load(tmp_path, TEST).tests[0].pipeline == tmp_path / "clicks.yaml"
    (tmp_path / "taps.yml").write_text("pipeline: taps")
    (tmp_path / "taps.test.yml").write_text(dedent(TEST))
    assert load_tests(tmp_path / "taps.test.yml").tests[0].pipeline == tmp_path / "taps.yml"


def test_the_pipeline_is_the_one_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "all.yaml").write_text("pipeline: ../clicks.yaml" + dedent(TEST))
    load(tmp_path, TEST)

    (test,) = load_tests(tmp_path / "tests" / "all.yaml").tests

    assert test.pipeline.resolve() == tmp_path / "clicks.yaml"
    assert test.folder == tmp_path / "tests"


@pytest.mark.parametrize(
    ("name", "start", "message", "hint"),
    [
        ("clicks.test.yaml", "", "there is no pipeline `clicks.yaml` beside the test", "Name it"),
        ("other.yaml", "", "the file doesn't say which pipeline it tests", "Write `pipeline: orders.yaml`"),
        ("a.yaml", "pipeline: b.yaml", "there is no pipeline file `b.yaml`", "relative to the test file"),
    ],
)
def test_without_a_pipeline_there_is_no_test(
    name: str, start: str, message: str, hint: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(start + dedent(TEST))

    found = load_tests(tmp_path / name)

    (diagnostic,) = found.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("GB701", message)
    assert hint in diagnostic.hint
    assert found.tests == ()


WRONG = [
    ("tests: {a: {steps: [{fails: boom}]}}", "GB005", 29, "`steps[0].fails`", "a diagnostic code such as"),
    ("tests: {a: {step: []}}", "GB004", 13, "unknown key `step`", ""),
    ("tests: {a: {steps: []}}", "GB005", 9, "a test needs `steps`", ""),
    ("tests: {a: 1}", "GB005", 12, "the test `a` must be a mapping", ""),
    ("tests: {}", "GB005", 8, "`tests`", ""),
    ("test: {}", "GB004", 1, "unknown key `test`", ""),
    ("tests: {a: {steps: [{}]}}", "GB005", 21, "a step without anything in it", ""),
    ("tests: {a: {steps: [{restart: false, fails: GB301}]}}", "GB005", 31, "must be true", ""),
    ("tests: {a: {steps: [{add: {t: [1]}, fails: GB301}]}}", "GB005", 32, "`steps[0].add.t[0]`", ""),
    ("tests: {a: {steps: [{add: {t: {}}, fails: GB301}]}}", "GB005", 31, "exactly one of `rows`", ""),
    ("tests: {a: {steps: [{add: {t: {row: []}}}]}}", "GB004", 32, "unknown key `row`", ""),
    ("tests: {a: {steps: [{expect: {t: {ordered: true}}}]}}", "GB005", 34, "say what is expected", ""),
    ("tests: {a: {steps: [{expect: {t: {count: -1}}}]}}", "GB005", 42, "greater than or equal to 0", ""),
    ("tests: {a: {steps: [{watermark: noon}]}}", "GB005", 33, "write a date or a time", ""),
    ("tests: {a: {steps: [{fails: GB301, expect: {t: []}}]}}", "GB005", 21, "a step that fails", ""),
    ("tests: {a: {fails: GB301, steps: [{fails: GB301}]}}", "GB005", 9, "takes no steps", ""),
    ("tests: {a: {steps: [{add: {t: []}}]}}", "GB706", 9, "the test `a` expects nothing", ""),
    ("replace: {t: {real: true, rows: []}}\ntests: {a: {fails: GB301}}", "GB005", 14, "give rows,", ""),
    ("replace: {t: {options: {}, rows: []}}\ntests: {a: {fails: GB301}}", "GB005", 14, "go with `gem`", ""),
    ("secrets: {a: b}\ntests: {a: {fails: GB301}}", "GB005", 10, "names no secret", "`scope/key`"),
    ("- a", "GB005", 1, "a test file is a mapping with `tests`", ""),
    ("tests: {a: {fails: GB301}, a: {fails: GB301}}", "GB003", 28, "stands twice", ""),
    ("tests: {a: [}", "GB002", 13, "isn't valid YAML", ""),
    ("", "GB006", 1, "the file is empty", ""),
]


@pytest.mark.parametrize(("text", "code", "column", "message", "rest"), WRONG)
def test_what_is_wrong_is_said_with_its_place(
    text: str, code: str, column: int, message: str, rest: str, tmp_path: Path
) -> None:
    found = load(tmp_path, text).diagnostics

    chosen = [diagnostic for diagnostic in found if diagnostic.code == code]
    assert chosen, [str(diagnostic) for diagnostic in found]
    assert message in chosen[0].message
    assert rest in chosen[0].message
    assert (chosen[0].line, chosen[0].column) == (1, column)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    (found,) = load_tests(tmp_path / "clicks.test.yaml").diagnostics

    assert found.code == "GB001"


def test_all_that_is_wrong_is_said_at_once_and_the_other_tests_stay(tmp_path: Path) -> None:
    text = """
        tests:
          one: {stepps: []}
          two: {steps: [{expect: {screen: {counts: 1}}}]}
          three: {steps: [{expect: {screen: {count: 1}}}]}
    """

    found = load(tmp_path, text)

    assert [(d.code, d.line, d.column) for d in found.diagnostics if d.code == "GB004"] == [
        ("GB004", 2, 9),
        ("GB004", 3, 36),
    ]
    assert "`steps`" in found.diagnostics[0].hint
    assert [test.name for test in found.tests] == ["three"]


# The examples of the codes do what they say


def written(text: str, folder: Path) -> DeclaredTest | None:
    name = "clicks.yaml"
    files: dict[str, list[str]] = {name: []}
    for line in text.splitlines():
        if line.startswith("# ") and " " not in line[2:]:
            name = line[2:]
        else:
            files.setdefault(name, []).append(line)
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines))
    pipeline = (folder / "clicks.yaml").read_text()
    rest = "targets:\n  screen: {gem: console, input: ticks}\n"
    rest += "" if "sources:" in pipeline else "sources:\n  ticks: {gem: rate}\n"
    (folder / "clicks.yaml").write_text(f"pipeline: clicks\n{rest}{pipeline}")
    found = load_tests(folder / "clicks.test.yaml")
    if found.diagnostics:
        raise PipelineError(found.diagnostics)
    (test,) = found.tests
    prepared = prepare_test(test)
    for name, data in test.steps[0].add.items():
        read_rows(data, prepared.fed[name].fields, test)
    return test


@pytest.mark.parametrize("code", ["GB701", "GB702", "GB703", "GB704", "GB705", "GB706"])
def test_the_examples_of_the_codes_do_what_they_say(code: str, tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as caught:
        written(CODES[code].breaks, tmp_path)
    assert [found.code for found in caught.value.diagnostics] == [code]
    assert all(found.line or code == "GB701" for found in caught.value.diagnostics)

    assert written(CODES[code].keeps, tmp_path) is not None
