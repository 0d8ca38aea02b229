"""The guide page on changes: its tables are of the code; its commands are typed with those of the other pages."""

from __future__ import annotations

import re
from pathlib import Path

import gem_bundle.changes
from gem_bundle.codes import CODES
from tests.core.changes.edits import EDITS
from tests.core.changes.page import PAGE, rendered

# Those from GB401 on are of checkpoints that can't be used, and those from GB450 on of other commands.
OF_CHANGES = re.compile(r"GB4[1-4]\d")


def test_the_tables_are_those_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert rendered(page) == page, "python -m tests.core.changes.page renews them"


def test_each_code_of_a_change_has_a_row() -> None:
    shown = {code for edit in EDITS for code in edit.codes}
    assert {code for code in CODES if OF_CHANGES.fullmatch(code)} - shown == set()


def test_no_code_of_a_change_has_another_number() -> None:
    (folder,) = gem_bundle.changes.__path__
    text = "".join(file.read_text(encoding="utf-8") for file in Path(folder).rglob("*.py"))
    of_checkpoints = {"GB402", "GB403", "GB404", "GB405", "GB406", "GB407"}
    of_accepting, of_secrets = {"GB408"}, {"GB409"}
    others = set(re.findall(r"\bGB\d{3}\b", text)) - of_checkpoints - of_accepting - of_secrets
    assert {code for code in others if not OF_CHANGES.fullmatch(code)} == set()
    assert others <= CODES.keys()
