"""What gem-bundle raises.

Every error derives from `GemBundleError` and from the builtin a Python user would expect, carries
facts instead of a sentence, and pickles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.diagnostics import Diagnostic


class GemBundleError(Exception):
    """The base of all errors that gem-bundle raises on purpose."""


class PipelineError(GemBundleError, ValueError):
    """A pipeline can't be used; `diagnostics` says everything that is wrong with it.

    Args:
        diagnostics: What was found, errors and warnings alike.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "\n".join(str(diagnostic) for diagnostic in self.diagnostics)


class PluginError(GemBundleError, LookupError):
    """A gem or a plugin can't be used.

    Args:
        reason: What is wrong, in one sentence.
        hint: What to do about it.
    """

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason, hint)
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.reason}\n{self.hint}" if self.hint else self.reason


class GemError(GemBundleError, RuntimeError):
    """A gem says that it can't do its work, in a sentence for the person who can fix it.

    Raise it from `read`, `apply`, `write` or `connect`; the runtime adds the node and its line.

    Args:
        code: A diagnostic code, for example ``GB505``.
        message: What is wrong and why.
        hint: What to do about it.
        option: The option that must change, or the way to the key or item in it, where one must.
    """

    def __init__(
        self, code: str, message: str, hint: str = "", option: str | tuple[str | int, ...] | None = None
    ) -> None:
        super().__init__(code, message, hint, option)
        self.code = code
        self.message = message
        self.hint = hint
        self.option = option

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class UnreachableError(GemError):
    """A gem says that a system outside can't be reached, or refuses the login: GB503.

    Raise it where a `GemError` may be raised, and on executors too.

    Args:
        message: What can't be reached and why.
        hint: What to do about it.
        option: The option that must change, as `GemError` has it.
    """

    def __init__(
        self, message: str, hint: str = "", option: str | tuple[str | int, ...] | None = None
    ) -> None:
        super().__init__("GB503", message, hint, option)
        self.args = (message, hint, option)


class PassingError(UnreachableError):
    """The same, and it may pass by itself: a query that fails with it may be started again."""


def describe_error(error: BaseException) -> str:
    """An exception in one line: its type and the first line of what it says."""
    first = str(error).strip().splitlines()
    return f"{type(error).__name__}: {first[0]}" if first else type(error).__name__
