"""How a value is told in a sentence: on one line, short, and without what is secret."""

from __future__ import annotations

from typing import Any

from gem_bundle.changes.withheld import marker_of, shown, text_of

RULE_ONLY = "; the gem `{}` doesn't say what that means: this is the rule and not knowledge"
"""What is said of an option whose gem says nothing."""

_LONGEST = 80
_BEFORE = 40  # of what is the same, so that the place can be found


def told(value: Any) -> str:
    """A value in a sentence: on one line, short, or not at all."""
    if value is None:
        return "nothing"
    if marker_of(value) is not None and text_of(value) is None:
        return "what isn't kept"
    return _quoted(_on_one_line(_briefly(value)))


def told_both(before: Any, after: Any) -> str:
    """What a value was and is, in a sentence: long ones around the first place where they differ.

    Args:
        before: What it was.
        after: What it is.
    """
    one, other = told(before), told(after)
    if one != other or not one.startswith("`"):
        return f"was {one} and is {other}"
    made = [_on_one_line(_briefly(value)) for value in (before, after)]
    is_left_out = made[0] == made[1]
    if is_left_out:
        made = [_on_one_line(shown(value)) for value in (before, after)]
    pairs = enumerate(zip(*made, strict=False))
    differ = next((n for n, (a, b) in pairs if a != b), min(map(len, made)))
    start = max(differ - _BEFORE, 0) if max(map(len, made)) > _LONGEST else 0
    one, other = (_quoted(text, start) for text in made)
    of_texts = is_left_out and isinstance(before, str) and isinstance(after, str)
    return f"was {one} and is {other}{' (only blanks and line breaks differ)' * of_texts}"


def _briefly(value: Any) -> Any:
    """A value for people: texts of several lines on one, and of mappings what isn't null."""
    value = shown(value)
    if isinstance(value, str):
        return " ".join(value.split()) if "\n" in value and value.strip() else value
    if isinstance(value, dict):
        return {key: _briefly(inner) for key, inner in value.items() if inner is not None}
    return [_briefly(inner) for inner in value] if isinstance(value, list) else value


def _on_one_line(value: Any) -> str:
    """A value as text, with what can't be printed written out."""
    import json

    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _quoted(text: str, start: int = 0) -> str:
    """A text, or so much of it as fits into a sentence."""
    end = start + _LONGEST
    return f"`{'…' * (start > 0)}{text[start:end]}{'…' * (len(text) > end)}`"
