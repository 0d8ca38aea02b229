"""Marks for the conformance suite's own tests, of which its users needn't know."""

import re
from typing import Any

import pytest

from gem_bundle.testing.conformance.registration import entry_of
from gem_bundle.testing.conformance.suite import WAIVED
from tests.connect_server import is_over_connect
from tests.gems.changes_by_default import BY_DEFAULT
from tests.samples import drawn

STARTS_PYTHON = {"test_the_import_is_light"}
# Each rule is tried every day, with so many gems of a kind; with all of them by `--long`.
GEMS = 1
# Rules whose tests let rows through a gem: a place of the matrix shows each gem in one of them.
THROUGH = re.compile(r"test_(adds|appends|completes|reads|replaces|updates|works|writes)_")
# A target that rejects rows has this test.
REJECTS = "test_delivers_or_rejects_each_row"
# Each edit of an option takes some queries.
CHANGES = "test_says_what_another_value_does"
EDITS = 2


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that measure in another Python, and draw of those that ask Spark."""
    rule = getattr(item, "originalname", "")
    suite: Any = getattr(item, "cls", None)
    if rule == CHANGES:
        suite.tried = classmethod(lambda cls: drawn(cls.edited(), EDITS, about=cls.__name__))
    elif rule == "test_says_what_its_options_mean":
        suite.by_default = BY_DEFAULT.get((suite.gem.kind, entry_of(suite.gem).name), ())
    if rule in STARTS_PYTHON:
        item.add_marker(pytest.mark.programs)
    if item.get_closest_marker("spark"):
        item.add_marker(pytest.mark.matrix)
        gem = item.nodeid.rpartition("::")[0] if THROUGH.match(rule) else None
        item.add_marker(pytest.mark.sample(GEMS, rule=f"{item.path.stem} {rule}", each=gem))
        if is_over_connect(item.config) and getattr(getattr(item, "cls", None), REJECTS, None) is not None:
            reason = (
                WAIVED + "what a target rejects can't be learned over Spark Connect: a run is refused, GB386"
            )
            item.add_marker(pytest.mark.xfail(reason=reason, run=False))
