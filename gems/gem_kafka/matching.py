"""Which topics a pattern means, as far as that can be told here: it is one of Java's."""

from __future__ import annotations

import re
import warnings


def java_pattern(pattern: str) -> re.Pattern[str] | None:
    """A Java regular expression for the names of topics.

    Args:
        pattern: The expression.

    Returns:
        What finds the same names; None for one that means something else here, or nothing.
    """
    try:
        with warnings.catch_warnings():
            # Of sets within sets, which Java has, Python only warns.
            warnings.simplefilter("error", FutureWarning)
            return re.compile(pattern)
    except (re.error, FutureWarning):
        return None
