"""The tutorials, done as they say by somebody who has nothing but gem-bundle's wheel and Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.kit.clean import ROOT, clean_environment, clean_variables
from tests.samples import in_an_environment_of_its_own
from tests.tours import follow

if TYPE_CHECKING:
    from pathlib import Path

    from tests.warm_spark import WarmSpark

pytestmark = pytest.mark.spark

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


@in_an_environment_of_its_own
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_goes_as_it_says(
    page: Path, gem_bundle_wheel: Path, tmp_path: Path, warm_spark: WarmSpark
) -> None:
    # Each has an environment of its own: a tutorial installs things.
    scripts = clean_environment(tmp_path / "venv", gem_bundle_wheel)
    variables = {**clean_variables(), **warm_spark.variables()}

    assert follow(page, tmp_path / "tutorial", scripts, environment=variables) > 5
