"""What is said of values that a check doesn't know: nothing, but of what is around them everything."""

from __future__ import annotations

import pytest

from tests.core.checking import check, found

TEXT = """\
pipeline: p
spark: {spark.x: "${secret:a/b}"}
sources:
  one:
    gem: topic
    options: {topic: t, columns: ["${secret:a/b}"], spark_options: {x: "${secret:a/b}"}}
transforms:
  two: {gem: shape, input: one, options: {window: {column: "${secret:a/b}"}, columns: {x: "${secret:a/b}"}}}
targets:
  three: {gem: sink, input: two}
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", []),
        ("{spark.x: ", "[{spark.x: ", ("GB005", 2, 8)),
        ('{x: "${secret:a/b}"}}\ntrans', '["${secret:a/b}"]}\ntrans', ("GB205", 6, 68)),
        ('spark_options: {x: "${secret:a/b}"}', 'limit: "${secret:a/b}"', []),
        ('spark_options: {x: "${secret:a/b}"}', 'limit: ["${secret:a/b}"]', ("GB205", 6, 60)),
        ('spark_options: {x: "${secret:a/b}"}', 'shape: {x: "${secret:a/b}"}', []),
        ('spark_options: {x: "${secret:a/b}"}', 'shape: ["${secret:a/b}"]', ("GB205", 6, 60)),
        ("{window: {column: ", "{window: {colum: ", ("GB206", 8, 43)),
        ("{window: {column: ", "{window: {column: x, clumn: ", ("GB204", 8, 63)),
    ],
)
def test_what_is_around_an_unknown_value(old: str, new: str, expected: object) -> None:
    text = TEXT.replace(old, new, 1)
    if new.startswith("[{"):
        text = text.replace('a/b}"}\nsources', 'a/b}"}]\nsources')

    places = found(check(text))

    if isinstance(expected, tuple):
        assert expected in places
        assert {code for code, _, _ in places} <= {expected[0], "GB204"}
    else:
        assert places == expected
