"""The README's tour, done as it says: files written, commands typed, and what they print compared."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.kit.clean import clean_variables
from tests.tours import Command, File, follow, matches, tour, type_in, virtual_environment

if TYPE_CHECKING:
    from tests.warm_spark import WarmSpark

README = Path(__file__).resolve().parents[2] / "README.md"
TOUR = "## Ten minutes"


@pytest.mark.matrix
@pytest.mark.spark
def test_the_tour_goes_as_the_readme_says(tmp_path: Path, warm_spark: WarmSpark) -> None:
    scripts = virtual_environment(tmp_path / "venv")
    environment = {**os.environ, **warm_spark.variables()}

    done = follow(README, tmp_path / "tour", scripts, start=TOUR, end="\n## ", environment=environment)

    assert done > 10
    assert warm_spark.lent > 0


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ((), "", True),
        ((), "a\n", False),
        (("a",), "a\n", True),
        (("a",), "a  \n", True),
        (("a",), "a\nb\n", False),
        (("...", "b"), "b\n", True),
        (("...", "b", "..."), "x\ny\nb\nz\n", True),
        (("...", "b"), "b\nz\n", False),
        (("a ... c",), "a b c\n", True),
        (("a ... c",), "a b\nb c\n", False),
        (("(a.c",), "(abc\n", False),
    ],
)
def test_the_comparison_tells_differences(expected: tuple[str, ...], printed: str, same: bool) -> None:
    assert matches(expected, printed) is same


PAGE = """\
# A page

```{include} ../README.md
:start-after: "x"
```

<!-- file: a.yaml -->
```yaml
pipeline: a
```

<!-- shown: nobody has such a cluster -->
```sh
rm -rf /
```

```console
$ cat a.yaml
pipeline: a
$ true
```
"""


def test_a_tour_is_files_and_commands_in_their_order() -> None:
    assert list(tour(PAGE)) == [
        File("a.yaml", "pipeline: a\n"),
        Command(18, "cat a.yaml", ("pipeline: a",)),
        Command(20, "true", ()),
    ]


def test_a_block_that_nobody_does_says_why() -> None:
    with pytest.raises(AssertionError, match="line 13: nobody tests this block"):
        list(tour(PAGE.replace("<!-- shown: nobody has such a cluster -->\n", "")))


@pytest.mark.programs
def test_a_difference_names_the_line_and_shows_both(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("pipeline: a\n$", "pipeline: b\n$"))
    with pytest.raises(AssertionError, match=r"page\.md:18: `cat a\.yaml` printed\npipeline: a\n"):
        follow(page, tmp_path / "tour", tmp_path)


@pytest.mark.programs
def test_status_lines_are_not_compared(tmp_path: Path) -> None:
    printed = type_in(r"printf 'one\n[1/2] a \r\033[K[2/2] b \rtwo\n'", tmp_path, os.environ)
    assert printed == "one\ntwo\n"


MOVING = """\
```console
$ mkdir a
$ cd a
```

<!-- file: b.txt -->
```
b
```

```console
$ cat b.txt
b
$ echo "path: $PYTHONPATH"
path: ...
```
"""


@pytest.mark.programs
@pytest.mark.parametrize(("alone", "path"), [(False, "path: /somewhere"), (True, "path:")])
def test_a_tour_goes_into_folders_and_can_be_alone(
    alone: bool, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    page = tmp_path / "page.md"
    page.write_text(MOVING.replace("path: ...", path))
    environment = clean_variables() if alone else None
    assert follow(page, tmp_path / "tour", tmp_path, environment=environment) == 3
    assert (tmp_path / "tour" / "a" / "b.txt").read_text() == "b\n"
