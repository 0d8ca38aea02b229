"""Regular expressions of Java's, read without a JVM: what it certainly refuses."""

import re

# Where Java reads on differently than Python, what Python says afterwards isn't certain: sets within sets
# and `&&` in them, texts between `\Q` and `\E`, and comments.
_UNLIKE = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*?(?:\[|&&)|\\Q|\(\?[a-zA-Z]*x", re.DOTALL)
_EVERYWHERE = {
    "missing ), unterminated subpattern": "a bracket isn't closed",
    "unbalanced parenthesis": "a bracket is closed that isn't open",
    "unterminated character set": "a `[` isn't closed",
    "bad escape (end of pattern)": "nothing stands behind the last backslash",
    "min repeat greater than max repeat": "it repeats at least more often than at most",
}
_NOTHING = "there is nothing that `{}` could repeat"


def refused_pattern(text: str) -> str | None:
    """Why Java takes no such regular expression; None where it does, or that isn't certain.

    Args:
        text: The expression.
    """
    if _UNLIKE.search(text):
        return None
    try:
        re.compile(text)
    except re.error as error:
        at = error.pos or 0
        if error.msg == "nothing to repeat" and text[at : at + 1] in set("*+?"):
            # Behind `^` and the like Java repeats it.
            return _NOTHING.format(text[at]) if at == 0 or text[at - 1] in "(|" else None
        if error.msg == "multiple repeat" and text[at : at + 1] in set("*+?"):
            return _NOTHING.format(text[at])
        return _EVERYWHERE.get(error.msg)
    except (OverflowError, RecursionError):
        return None
    return None
