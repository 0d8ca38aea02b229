"""What identifies the Python code that a pipeline names: a change of what it does, and nothing else."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from gem_bundle.changes.functions import function_hash

if TYPE_CHECKING:
    from pathlib import Path

JOBS = """
import json
from datetime import datetime
from rules import LIMIT, keep as kept
from shop import prices
import shop.taxes

RATE = 2
TABLE = {"a": 1}
TABLE.update(b=2)
OTHER = 5

def helper(value):
    return value * RATE

def clean(df, threshold=1):
    '''Clean rows.'''
    # A comment.
    return df.filter(helper(df.n) > threshold + TABLE["a"])

def unrelated(df):
    return df.limit(OTHER)

class Writer:
    def process(self, row):
        print(kept(row), prices.of(row), shop.taxes.of(row))

def late(df):
    from rules import other
    return other(df)
"""
RULES = """
LIMIT = 3
def keep(row):
    return row.n < LIMIT
def other(df):
    return df.limit(1)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jobs.py").write_text(JOBS)
    (tmp_path / "rules.py").write_text(RULES)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("")
    (tmp_path / "shop" / "prices.py").write_text(
        "from .taxes import of as tax\ndef of(row): return tax(row)\n"
    )
    (tmp_path / "shop" / "taxes.py").write_text("def of(row): return 1\n")
    return tmp_path


def changed(folder: Path, reference: str, old: str, new: str, file: str = "jobs.py") -> bool:
    before = function_hash(reference, folder)
    assert before
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    after = function_hash(reference, folder)
    assert after
    return before != after


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# A comment.", "# Another one, longer."),
        ("'''Clean rows.'''", '"""Keep what is new."""'),
        ("'''Clean rows.'''", ""),
        ("df.filter(helper(df.n)", "df.filter(\n        helper(df.n)"),
        ("OTHER = 5", "OTHER = 6"),
        ("df.limit(OTHER)", "df.limit(7)"),
        ("import json\n", ""),
        ('"a"]', "'a']"),
    ],
)
def test_what_a_function_does_not_do_makes_no_difference(folder: Path, old: str, new: str) -> None:
    assert not changed(folder, "jobs:clean", old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("threshold=1", "threshold=2"),
        (") > threshold", ") >= threshold"),
        ("RATE = 2", "RATE = 3"),
        ("value * RATE", "value + RATE"),
        ("b=2", "b=3"),
    ],
)
def test_what_it_does_and_what_it_uses_in_its_module_does(folder: Path, old: str, new: str) -> None:
    assert changed(folder, "jobs:clean", old, new)


@pytest.mark.parametrize(
    ("reference", "file", "old", "new"),
    [
        ("jobs:Writer", "rules.py", "LIMIT = 3", "LIMIT = 4"),
        ("jobs:Writer.process", "rules.py", "row.n < LIMIT", "row.n <= LIMIT"),
        ("jobs:Writer", "shop/prices.py", "return tax(row)", "return -tax(row)"),
        ("jobs:Writer", "shop/taxes.py", "return 1", "return 2"),
        ("jobs:late", "rules.py", "df.limit(1)", "df.limit(2)"),
        ("shop.prices:of", "shop/taxes.py", "return 1", "return 2"),
    ],
)
def test_what_it_uses_in_modules_beside_it_does(
    folder: Path, reference: str, file: str, old: str, new: str
) -> None:
    assert changed(folder, reference, old, new, file)


def test_what_is_imported_and_not_used_makes_no_difference(folder: Path) -> None:
    assert not changed(folder, "jobs:clean", "row.n < LIMIT", "row.n <= LIMIT", "rules.py")
    assert not changed(folder, "jobs:Writer", "df.limit(1)", "df.limit(2)", "rules.py")


def test_everything_that_a_star_brings_counts(folder: Path) -> None:
    (folder / "star.py").write_text("from rules import *\ndef run(df): return keep(df)\n")
    assert changed(folder, "star:run", "row.n < LIMIT", "row.n <= LIMIT", "rules.py")


def test_nothing_is_imported(folder: Path) -> None:
    (folder / "loud.py").write_text("raise SystemExit('imported')\ndef run(df): return df\n")
    (folder / "loudly").mkdir()
    (folder / "loudly" / "__init__.py").write_text("raise SystemExit('imported')\n")
    (folder / "loudly" / "inner.py").write_text("def run(df): return df\n")
    before = set(sys.modules)
    assert function_hash("loud:run", folder)
    assert function_hash("loudly.inner:run", folder)
    assert set(sys.modules) == before


@pytest.mark.parametrize(
    "reference", ["absent:run", "jobs:absent", "shop.absent:run", "broken:run", "jobs.deeper:run", "sys:exit"]
)
def test_code_that_can_not_be_found_has_no_hash(folder: Path, reference: str) -> None:
    (folder / "broken.py").write_text("def run(:\n")
    assert function_hash(reference, folder) == ""


def test_installed_code_has_one_that_ends_at_its_module(folder: Path) -> None:
    assert function_hash("json.decoder:JSONDecoder", folder)
    assert function_hash("pluggy:PluginManager", folder)


def test_a_function_in_a_zip_file_is_known_by_its_code(tmp_path: Path) -> None:
    def hash_in(name: str, rules: str) -> str:
        with ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(
                "zipped_jobs.py", "import zipped_rules.own\ndef f(df):\n    return zipped_rules.own.go(df)\n"
            )
            archive.writestr("zipped_rules/__init__.py", "")
            archive.writestr("zipped_rules/own.py", rules)
        return function_hash("zipped_jobs:f", tmp_path / name)

    before = hash_in("a.zip", "def go(df):\n    return df\n")
    assert before
    assert before == hash_in("b.zip", "def go(df):\n    return df  # the same\n")
    assert before != hash_in("c.zip", "def go(df):\n    return df.limit(1)\n")
    (tmp_path / "broken.zip").write_bytes(b"no zip")
    assert function_hash("zipped_jobs:f", tmp_path / "broken.zip") == ""


@pytest.mark.parametrize(
    "statement",
    [
        'TABLE["eu"] = {}',
        "Job.limit = {}",
        "changed_rules.LIMIT = {}",
        'TABLE["us"], more = {}, 1',
        'TABLE["eu"]: int = {}',
        "TABLE.update(eu={})",
        "LIMIT += {}",
    ],
)
def test_a_statement_that_changes_what_a_function_uses_belongs_to_it(tmp_path: Path, statement: str) -> None:
    def hash_of(function: str, number: int) -> str:
        folder = tmp_path / str(number)
        folder.mkdir(exist_ok=True)
        (folder / "changed_rules.py").write_text("LIMIT = 0\n")
        (folder / "changed_jobs.py").write_text(
            "import changed_rules\nTABLE = {}\nLIMIT = 0\nclass Job: pass\n"
            f"{statement.format(number)}\n"
            "def f(df):\n    return df.limit(TABLE['eu'] + Job.limit + changed_rules.LIMIT + LIMIT)\n"
            "def other(df):\n    return df\n"
        )
        return function_hash(f"changed_jobs:{function}", folder)

    assert hash_of("f", 1) != hash_of("f", 2)
    assert hash_of("other", 1) == hash_of("other", 2)


REGISTRY = """
RULES = {}
SEEN = []

def rule(name):
    def keep(function):
        RULES[name] = function
        return function
    return keep

def counted(function):
    def inner(*values):
        SEEN.append(1)
        return function(*values)
    return inner

class Kinds:
    def __init__(self):
        self.all = []

    def add(self, function):
        self.all += [function]
        return function

KINDS = Kinds()

class Step:
    steps = []

    def __init_subclass__(cls):
        cls.steps.append(cls)
"""
REGISTERED = """
from .registry import KINDS, RULES, Step, counted, rule

@rule("first")
def first(df):
    return df.limit(1)

@KINDS.add
def second(df):
    return df.limit(2)

class Third(Step):
    rows = 3

def fill():
    RULES["fourth"] = lambda df: df.limit(4)

fill()
RULES.setdefault("fifth", []).append(5)

@counted
def sixth(df):
    return df.limit(6)
"""
RUNS = """
from . import registered
from .registry import KINDS, RULES, Step, counted

def by_rules(df):
    for rule in RULES.values():
        df = rule(df)
    return df

def by_kinds(df):
    return KINDS.all[0](df)

def by_steps(df):
    return df.limit(Step.steps[0].rows)

@counted
def by_none(df):
    return df
"""


@pytest.fixture
def registering(tmp_path: Path) -> Path:
    package = tmp_path / "registering"
    package.mkdir()
    files = {"registry": REGISTRY, "registered": REGISTERED, "runs": RUNS, "__init__": ""}
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("by_rules", "df.limit(1)", "df.limit(10)"),
        ("by_rules", '"first"', '"last"'),
        ("by_rules", "df.limit(4)", "df.limit(40)"),
        ("by_rules", "append(5)", "append(50)"),
        ("by_kinds", "df.limit(2)", "df.limit(20)"),
        ("by_steps", "rows = 3", "rows = 30"),
    ],
)
def test_what_is_put_into_a_registry_belongs_to_what_goes_by_it(
    registering: Path, name: str, old: str, new: str
) -> None:
    file = "registering/registered.py"
    for other in {"by_rules", "by_kinds", "by_steps", "by_none"} - {name}:
        assert not changed(registering, f"registering.runs:{other}", old, new, file)
        changed(registering, f"registering.runs:{other}", new, old, file)
    assert changed(registering, f"registering.runs:{name}", old, new, file)


@pytest.mark.parametrize(
    "text",
    [
        "import registering.registry\nregistering.registry.RULES['more'] = 7\n",
        "import registering.registry as rules\nrules.RULES['more'] = 7\n",
        "from registering import registry as rules\nrules.RULES.update(more=7)\n",
        "from registering.registry import RULES as rules\ndel rules['more']; rules['more'] = 7\n",
    ],
)
def test_a_registry_is_known_by_whatever_name_it_has(registering: Path, text: str) -> None:
    (registering / "registering" / "__init__.py").write_text(text)
    assert changed(registering, "registering.runs:by_rules", "7", "8", "registering/__init__.py")


def test_classes_of_classes_and_what_a_class_does_as_it_is_made_count(tmp_path: Path) -> None:
    (tmp_path / "classes.py").write_text(
        "KNOWN = []\nclass Base:\n    def __init_subclass__(cls, **options):\n        KNOWN.append(cls)\n"
        "class Middle(Base): pass\nclass Last(Middle):\n    rows = 3\n"
        "class Alone:\n    rows = 4\n    KNOWN.insert(0, rows)\nclass Other:\n    rows = 5\n"
        "def run(df): return df.limit(KNOWN[0].rows)\n"
    )
    assert changed(tmp_path, "classes:run", "rows = 3", "rows = 30", "classes.py")
    assert changed(tmp_path, "classes:run", "rows = 4", "rows = 40", "classes.py")
    assert not changed(tmp_path, "classes:run", "rows = 5", "rows = 50", "classes.py")


def test_an_expression_that_is_too_long_to_read_is_no_traceback(tmp_path: Path) -> None:
    found = []
    for length in (100, 400, 700, 1000, 3000):
        (tmp_path / "long.py").write_text(f"def run(df): return {' + '.join(['df'] * length)}\n")
        found.append(bool(function_hash("long:run", tmp_path)))
    assert found[0]
    assert not found[-1]


def test_what_is_wrapped_like_a_function_does_not_belong_to_it(registering: Path) -> None:
    reference, file = "registering.runs:by_none", "registering/registered.py"
    assert not changed(registering, reference, "df.limit(6)", "df.limit(60)", file)
    assert changed(registering, reference, "SEEN.append(1)", "SEEN.append(2)", "registering/registry.py")


def test_a_function_that_is_called_may_set_what_another_uses(tmp_path: Path) -> None:
    (tmp_path / "setting.py").write_text(
        "LIMIT = 1\ndef configure(rows):\n    global LIMIT\n    LIMIT = rows * 2\nconfigure(5)\n"
        "def run(df): return df.limit(LIMIT)\ndef other(df): return df\n"
    )
    assert changed(tmp_path, "setting:run", "rows * 2", "rows * 3", "setting.py")
    assert changed(tmp_path, "setting:run", "configure(5)", "configure(6)", "setting.py")
    assert not changed(tmp_path, "setting:other", "configure(6)", "configure(7)", "setting.py")
