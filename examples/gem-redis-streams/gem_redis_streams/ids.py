"""The ids of entries: two numbers of 64 bits, milliseconds since 1970 and a sequence."""

from __future__ import annotations

import re
from typing import NamedTuple

_LARGEST = (1 << 64) - 1
_ID = re.compile(r"(\d{1,20})(?:-(\d{1,20}))?")


class EntryId(NamedTuple):
    """The id of an entry; ids compare as Redis compares them."""

    milliseconds: int
    sequence: int = 0

    @classmethod
    def parse(cls, text: str) -> EntryId:
        """An id as Redis writes it: ``1767600000000-0``; without a sequence it is the first of that moment.

        Raises:
            ValueError: When it is none.
        """
        match = _ID.fullmatch(text)
        numbers = [int(number or 0) for number in match.groups()] if match else []
        if not numbers or max(numbers) > _LARGEST:
            raise ValueError(f"an id is written as `1767600000000-0`, and `{text}` isn't one")
        return cls(*numbers)

    def before(self) -> EntryId:
        """The largest id that is smaller; the smallest one stays."""
        if self.sequence:
            return EntryId(self.milliseconds, self.sequence - 1)
        return EntryId(self.milliseconds - 1, _LARGEST) if self.milliseconds else self

    def after(self) -> EntryId:
        """The smallest id that is larger."""
        if self.sequence < _LARGEST:
            return EntryId(self.milliseconds, self.sequence + 1)
        return EntryId(self.milliseconds + 1, 0)

    def __str__(self) -> str:
        return f"{self.milliseconds}-{self.sequence}"


NONE = EntryId(0, 0)
"""The id that no entry has: it is before all others."""
