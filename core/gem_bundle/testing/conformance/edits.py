"""Edits that the suite tries: one option with another value, and whether what the gem says of it is true."""

from __future__ import annotations

from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Union,
    cast,
    get_args,
    get_origin,
)

from gem_bundle.testing.conformance.suite import GemConformance

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from gem_bundle.gem import Gem
    from gem_bundle.options import Effect

CONTINUES = "no row is different"
FROM_NOW_ON = "the rows of the old value would have been others by the new one"
SKIPPED = "rows are never read that the new value gives"
AGAIN = "rows that were read come once more"
MIXED = "what comes out is neither what the old value gives nor what the new one does"
REFUSED = "the query fails"

_SAID: Mapping[Effect, str] = {
    "continues": "no row is different for it",
    "from_now_on": "rows from now on go by the new value, and nothing else is different",
    "skipped": "rows are never read, and nothing worse",
    "again": "rows that were read come once more, and nothing worse",
    "mixed": "old and new get into each other, and Spark goes on",
    "refused": "Spark refuses to go on",
}
# What may be found where something is said: what is harmless may hide what rows, or a crash, would show.
_TRUE: Mapping[Effect, Collection[str]] = {
    "continues": {CONTINUES},
    "from_now_on": {CONTINUES, FROM_NOW_ON},
    "skipped": {CONTINUES, FROM_NOW_ON, SKIPPED},
    "again": {CONTINUES, FROM_NOW_ON, AGAIN},
    "mixed": {CONTINUES, FROM_NOW_ON, SKIPPED, AGAIN, MIXED},
    "refused": {REFUSED},
}


class Edit(NamedTuple):
    """One option with another value.

    Args:
        option: Its name.
        value: The value, or a function that gives it for the class's instance, when `provide` was called.
    """

    option: str
    value: Any

    def of(self, suite: GemConformance) -> Any:
        """The value for an instance of the class."""
        return self.value(suite) if callable(self.value) else self.value

    def is_one(self, suite: GemConformance, options: Mapping[str, Any]) -> bool:
        """Whether options with the value are valid where `provide` leads, and others than it gives."""
        try:
            new = suite.made(options)
        except ValueError:
            return False
        return bool(getattr(suite.live().options, self.option) != getattr(new.options, self.option))


def has_edits(suite: type[GemConformance], gem: Gem) -> bool:  # noqa: ARG001 (the shape of a condition)
    """Whether a class has any edit to try."""
    return next(cast("type[EditTests]", suite).edited(), None) is not None


def is_untrue(said: Effect, truth: str) -> bool:
    """Whether what a gem says of an edit is contradicted by what was found.

    Args:
        said: What it says.
        truth: What was found.
    """
    return truth not in _TRUE[said]


def contradiction(edit: Edit, before: Any, after: Any, said: Effect, truth: str, *, known: bool) -> str:
    """What is untrue, in words for the gem's author.

    Args:
        edit: The edit.
        before: The value that the option had.
        after: The value that it has.
        said: What the gem says of it.
        truth: What was found.
        known: Whether the gem says it; else the rule does for it.
    """
    who = "the gem says" if known else "the gem says nothing, which counts as"
    return (
        f"of `{edit.option}`, which was {before!r} and is {after!r}, {who} `{said}`: {_SAID[said]}. In Spark "
        f"{truth}"
    )


def _named(kind: Any) -> tuple[Any, ...]:
    """The values of an annotation of which there are a few: of booleans, and of what is named."""
    if kind is bool:
        return (True, False)
    if get_origin(kind) is Literal:
        return get_args(kind)
    if get_origin(kind) is Annotated:
        return _named(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return tuple(value for each in get_args(kind) for value in _named(each))
    return ()


class EditTests(GemConformance):
    """What is tried of a gem whose options change while its query has a checkpoint.

    Attributes:
        edits: Other values of options, each with the name of the option; a value that only `provide` knows
            is a function of the instance. Booleans and options with named values are tried without being
            named here.
        untried: Options with values that can't be tried with a stream that ends, each with the reason; `...`
            stands for all values.
    """

    edits: ClassVar[Sequence[tuple[str, Any | Callable[[Any], Any]]]] = ()
    untried: ClassVar[Sequence[tuple[str, Any, str]]] = ()

    @classmethod
    def edited(cls) -> Iterator[Edit]:
        """The edits: one option each, of which the new value is valid."""
        sample = dict(cls.sample())
        options = cls.gem.options_type
        given = [*cls.edits]
        for name, field in options.model_fields.items():
            given += [(name, value) for value in _named(field.annotation) if (name, value) not in given]
        known = {options.canonical(key) or key: value for key, value in sample.items()}
        for name, value in given:
            if any(name == option and left in (value, ...) for option, left, _ in cls.untried):
                continue
            if callable(value):
                yield Edit(name, value)
                continue
            try:
                before, after = options.model_validate(known), options.model_validate({**known, name: value})
            except ValueError:
                continue  # not without another option beside it
            if getattr(before, name) != getattr(after, name):
                yield Edit(name, value)

    @classmethod
    def tried(cls) -> Sequence[Edit]:
        """The edits that are tried: all of them. Each takes some queries; who has many may leave some out."""
        return list(cls.edited())

    def _given_options(self) -> dict[str, Any]:
        """The options of `provide`, under the gem's own names for them."""
        canonical = type(self.live().options).canonical
        return {canonical(key) or key: value for key, value in (self._provided or {}).items()}
