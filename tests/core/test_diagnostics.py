from gem_bundle.diagnostics import listed_names


def test_names_are_told_up_to_a_number_and_counted_from_there() -> None:
    """A chain of forks reaches a target on thousands of paths, and a message has to be read."""
    assert listed_names([]) == ""
    assert listed_names(["a", "b"], most=2) == "`a`, `b`"
    assert listed_names(iter("abcd"), most=2) == "`a`, `b` and 2 more"
    assert listed_names(range(3000)).endswith("`39` and 2,960 more")
