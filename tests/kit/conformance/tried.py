"""Which options of the built-in gems the suite tries with another value, and which it can't."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gem_bundle.gem import Gem

    Option = tuple[type[Gem[Any]], str]
    Reasons = Mapping[Any, Mapping[str, Iterable[str]]]

TEST = "test_says_what_another_value_does"


class Tried(NamedTuple):
    """The options of the gems that a module has classes for.

    Args:
        tried: Those that are tried.
        left: Those that aren't.
    """

    tried: set[Option]
    left: set[Option]


def options_tried(module: Mapping[str, Any], base: type) -> Tried:
    """Which options are tried by the classes of a module.

    Args:
        module: Its names.
        base: What the classes derive from.
    """
    suites = [
        suite
        for suite in module.values()
        if isinstance(suite, type) and issubclass(suite, base) and hasattr(suite, "gem")
    ]
    asked = [suite for suite in suites if getattr(suite, TEST, None)]
    tried = {(suite.gem, edit.option) for suite in asked for edit in suite.edited()}
    options = {(suite.gem, name) for suite in suites for name in suite.gem.options_type.model_fields}
    return Tried(tried, options - tried)


def with_reasons(reasons: Reasons) -> set[Option]:
    """The options that reasons are given for.

    Args:
        reasons: By gem and reason.
    """
    return {(gem, name) for gem, why in reasons.items() for names in why.values() for name in names}
