"""The regression cases without Spark: the checker says what is expected of it."""

from pathlib import Path

import pytest

from gem_bundle.check.checker import check_definition
from gem_bundle.pipeline.document import Document
from gem_bundle.pipeline.loader import LoadOptions, load_values
from gem_bundle.plugins import load_registry
from tests.differential.cases import Case, load_cases
from tests.differential.compare import DIFFERENCES, NO_STREAM, OTHER, STREAMING, by_target

CASES = load_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_checker_says_what_is_expected(case: Case) -> None:
    loaded = load_values(case.values, Document(case.name), Path("/drawn"), "", LoadOptions(environment={}))
    assert loaded.definition is not None
    checked = check_definition(loaded, load_registry())
    placed = by_target(loaded.definition, [d for d in checked.diagnostics if d.is_error])
    assert set(placed) == set(case.expect)
    for target, expected in case.expect.items():
        codes = {d.code for d in placed[target]}
        if expected == "accepted":
            assert not codes
        elif expected == "streaming":
            assert any(STREAMING.fullmatch(code) for code in codes), codes
        elif expected == "static":
            assert NO_STREAM in codes
        elif expected == "analysis":
            assert any(OTHER.fullmatch(code) or STREAMING.fullmatch(code) for code in codes), codes
        else:
            assert codes == {expected}


def test_each_deliberate_difference_has_a_case() -> None:
    assert {code for case in CASES for code in case.expect.values() if code.startswith("GB")} == set(
        DIFFERENCES
    )
