"""What a daily run draws comes from its seed alone, and has some of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests import samples
from tests.samples import drawn, examples

if TYPE_CHECKING:
    from pathlib import Path

VALUES = list(range(1000))
TESTS = """
import pytest

@pytest.mark.sample(3)
@pytest.mark.parametrize("number", range(50))
def test_some(number): pass

@pytest.mark.sample(1, by=lambda kind, number: kind)
@pytest.mark.parametrize("number", range(10))
@pytest.mark.parametrize("kind", ["a", "b", "c"])
def test_one_of_each(kind, number): pass

@pytest.mark.parametrize("number", range(5))
def test_all(number): pass

class TestOne:
    @pytest.mark.sample(1, rule="a rule")
    def test_rule(self): pass

class TestOther(TestOne):
    pass
"""
# Three sides of a promise: one has two instances, and of the instances of another one is enough.
SIDES = """
import pytest

some = pytest.mark.side("a promise", 1)

@some
@pytest.mark.parametrize("number", range(2))
def test_left(number): pass

@some
@pytest.mark.sample(1)
@pytest.mark.parametrize("number", range(2))
def test_right(number): pass

@some
def test_behind(): pass
"""
GEMS = "abcdef"
# As the conformance suite marks its tests: rows go through a gem in two of its rules.
CONFORMANCE = "import pytest\n" + "".join(
    f"@pytest.mark.sample(1, rule={rule!r}, each={gem if rule != 'names' else None!r})\ndef test_{rule}_{gem}(): pass\n"
    for gem in GEMS
    for rule in ("reads", "writes", "names")
)


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(seed: int, long: bool = False, place: bool = False) -> None:
        monkeypatch.setattr(samples._Run, "seed", seed)
        monkeypatch.setattr(samples._Run, "long", long)
        monkeypatch.setattr(samples._Run, "place", place)
        monkeypatch.setattr(samples._Run, "names_files", False)

    return run


def test_a_seed_draws_the_same_again(seeded: Any) -> None:
    found = []
    for seed in (1, 2, 1):
        seeded(seed)
        found.append(drawn(VALUES, 20))
    assert found[0] == found[2] != found[1]
    assert len(set(found[0])) == 20
    assert found[0] == sorted(found[0])
    assert drawn(VALUES, 20, about="others") != found[0]
    assert drawn(VALUES[:5], 20) == VALUES[:5]


def test_a_long_run_has_all(seeded: Any) -> None:
    seeded(1, long=True)
    assert drawn(VALUES, 20) == VALUES
    assert (examples(10), examples(10, 70)) == (200, 70)
    seeded(1)
    assert (examples(10), examples(10, 70)) == (10, 10)


class Collected:
    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.names = [item.name for item in session.items]


def collected(folder: Path, *arguments: str, text: str = TESTS) -> list[str]:
    """The tests that are left of a text."""
    file = folder / f"test_{folder.name}.py"
    file.write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    sample\n    side\n")
    found = Collected()
    quiet = [
        "-p",
        "no:terminal",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:unraisableexception",  # collects garbage five times at its end
        "-c",
        str(folder / "pytest.ini"),
        "--collect-only",
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1"
        )  # nothing here needs the plugins, which cost seconds
        pytest.main([*quiet, str(file), *arguments], [found, samples])
    return found.names


def test_instances_are_left_out_by_the_seed_and_some_of_every_kind_stay(seeded: Any, tmp_path: Path) -> None:
    found = []
    for seed in (1, 2, 1):
        seeded(seed)
        found.append(collected(tmp_path))
    assert found[0] == found[2] != found[1]
    for names in found:
        assert len([name for name in names if name.startswith("test_some[")]) == 3
        assert [name[:18] for name in names if "one_of_each" in name] == [
            f"test_one_of_each[{kind}" for kind in "abc"
        ]
        assert len([name for name in names if name.startswith("test_all[")]) == 5
        assert names.count("test_rule") == 1


def test_an_instance_that_is_asked_for_is_there(seeded: Any, tmp_path: Path) -> None:
    for seed in (1, 2):
        seeded(seed)
        assert collected(tmp_path, "-k", "test_some and 17") == ["test_some[17]"]


def test_a_long_run_leaves_none_out(seeded: Any, tmp_path: Path) -> None:
    seeded(1, long=True)
    assert len(collected(tmp_path)) == 50 + 30 + 5 + 2


def test_a_place_of_the_matrix_has_each_gem_and_each_rule(seeded: Any, tmp_path: Path) -> None:
    found = []
    for seed in (1, 2):
        seeded(seed, place=True)
        names = collected(tmp_path, text=CONFORMANCE)
        shown = {name[-1] for name in names if "names" not in name}
        assert shown == set(GEMS)
        assert {name.split("_")[1] for name in names} == {"reads", "writes", "names"}
        assert len(GEMS) < len(names) < 2 * len(GEMS)
        found.append(names)
    assert found[0] != found[1]


def test_a_place_of_the_matrix_has_all_instances_of_other_rules(seeded: Any, tmp_path: Path) -> None:
    seeded(1, place=True)
    assert len(collected(tmp_path)) == 50 + 30 + 5 + 2


def test_of_a_promise_some_sides_are_drawn(seeded: Any, tmp_path: Path) -> None:
    found = set()
    for seed in range(20):
        seeded(seed)
        found.add(tuple(collected(tmp_path, text=SIDES)))
    assert found == {
        ("test_left[0]", "test_left[1]"),
        *(("test_right[0]",), ("test_right[1]",)),
        ("test_behind",),
    }
    seeded(1, long=True)
    assert len(collected(tmp_path, text=SIDES)) == 5


def test_a_file_that_is_named_has_all_sides(
    seeded: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seeded(1)
    monkeypatch.setattr(samples._Run, "names_files", True)
    assert len(collected(tmp_path, text=SIDES)) == 4, "but of one rule's instances only one"
    (other := tmp_path / "other").mkdir()
    assert len([name for name in collected(other) if name.startswith("test_some[")]) == 3


def test_a_daily_run_has_each_rule(seeded: Any, tmp_path: Path) -> None:
    seeded(1)
    names = collected(tmp_path, text=CONFORMANCE)
    assert sorted(name.split("_")[1] for name in names) == ["names", "reads", "writes"]
