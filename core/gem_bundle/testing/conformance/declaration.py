"""What a gem says about itself: its registration, its description, its example, its own rules."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from gem_bundle.diagnostics import Finding
from gem_bundle.errors import PluginError
from gem_bundle.facts import Facts
from gem_bundle.plugins import GemEntry, Origin, load_registry
from gem_bundle.testing.conformance.outside import kept_inside
from gem_bundle.testing.conformance.suite import GemConformance, fail, fail_for, make

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.gem import Gem

_CODE = re.compile(r"[A-Z]{2,}\d{3,}")


class DeclarationTests(GemConformance):
    """The gem can be found, and says what its users have to know."""

    def test_is_registered(self) -> None:
        """A plugin that is installed registers the gem, under one name."""
        found = registered(self.gem)
        if not found:
            fail(
                f"no installed plugin registers `{_reference(self.gem)}`: register it in the module that "
                f"the entry point of the group `gem_bundle` names, with `register('{self.gem.kind}', 'name', "
                f"'{_reference(self.gem)}')`, and install the distribution (`pip install -e .`)"
            )
        if len(found) > 1:
            names = ", ".join(f"`{entry.name}` by {entry.origin}" for entry in found)
            fail(f"the gem is registered more than once: {names}")

    def test_the_summary_is_a_sentence(self) -> None:
        """The first paragraph of the docstring stands in `gem-bundle gems`."""
        if "__doc__" not in vars(self.gem) or not (self.gem.__doc__ or "").strip():
            fail(f"`{self.gem.__name__}` has no docstring; its first sentence is shown by `gem-bundle gems`")
        summary = self.gem.summary()
        if not (summary[:1].isupper() and summary.endswith(".") and len(summary.split()) > 2):
            fail(f"the docstring must begin with a sentence to the gem's user, unlike {summary!r}")

    def test_example_and_sample_are_valid(self) -> None:
        """The example of `gem-bundle describe` works as it stands, and so do the sample options."""
        problems = []
        for what, options in (("example", self.gem.example), ("sample options", self.sample())):
            try:
                make(self.gem, options)
            except ValidationError as error:
                problems.append(f"the {what} {dict(options)!r} are refused: {_first(error)}")
            except Exception as error:  # noqa: BLE001 (a gem may raise anything here, and none is right)
                problems.append(
                    f"the gem can't be made with the {what}: {type(error).__name__}: {error}; options are to "
                    "be refused by their model"
                )
        fail_for(problems)

    def test_describe_is_complete(self) -> None:
        """`gem-bundle describe` has words for everything, as text, JSON and Markdown."""
        import json

        from gem_bundle.describe import describe_gem, markdown, semantics_in_words

        described = describe_gem(_entry(self.gem))
        problems = []
        if not described.example and any(option.required for option in described.options):
            problems.append("give the gem an `example`: options that make a working node")
        problems += [
            f"the type of the option `{option.name}` is shown as `{option.type}`; use a type of "
            "`gem_bundle.types`, or give yours words by the `title` of a `WithJsonSchema`"
            for option in described.options
            if not option.type or re.search(r"[<\[]|\b(Annotated|Union|ForwardRef)\b", option.type)
        ]
        if not all(what and how for what, how in semantics_in_words(described)):
            problems.append("the semantics can't be put into words")
        try:
            json.dumps(described.as_dict())
        except TypeError as error:
            problems.append(f"`gem-bundle describe --format json` fails: {error}")
        page = markdown(described)
        problems += [
            f"the reference page leaves out the option `{option.name}`"
            for option in described.options
            if f"`{option.name}`" not in page
        ]
        fail_for(problems)

    def test_checks_need_nothing_outside(self) -> None:
        """What every check calls opens no file and no connection, and starts no process."""
        gem = self.made()
        with kept_inside() as uses:
            _say_all(self, gem)
        fail_for([f"`{what}` {use}: a check must not" for what, use in dict.fromkeys(uses)])

    def test_findings_are_well_formed(self) -> None:
        """The gem's rules accept the sample options, and point at options that exist."""
        gem = self.made()
        problems = []
        for facts in _input_facts(self):
            found = list(gem.check(*facts))
            problems += list(wrong_findings(self.gem, found))
            problems += [
                f"`check` refuses the sample options: {finding.message}"
                for finding in found
                if isinstance(finding, Finding) and finding.severity == "error"
            ]
        fail_for(list(dict.fromkeys(problems)))

    def test_places_are_named_by_options(self) -> None:
        """`places` says by which option the user can change a place."""
        places: dict[str, object] = getattr(self.made(), "places", dict)()
        fail_for(
            [
                f"`places` says `{name}`, which is no option; name the option that says where"
                for name in places
                if name not in self.gem.options_type.model_fields
            ]
        )


def registered(gem: type[Gem[Any]]) -> list[GemEntry]:
    """The entries of the registry that mean a class."""
    # What is installed depends on where Python looks: a test may have put a distribution there.
    entries = _entries(tuple(sys.path))
    return [entry for entry in entries if entry.kind == gem.kind and _loads(entry) is gem]


def wrong_method(method: str, promised: bool, there: bool) -> Iterator[str]:
    """What is wrong where the semantics promise a method that isn't there, or the other way round."""
    if promised and not there:
        yield f"the semantics promise what needs the method `{method}`, and there is none"
    if there and not promised:
        yield f"there is a method `{method}`, and the semantics say that it can't be used"


def wrong_findings(gem: type[Gem[Any]], findings: Iterable[object]) -> Iterator[str]:
    """What is wrong with the form of a gem's findings."""
    for finding in findings:
        if not isinstance(finding, Finding):
            yield f"{finding!r} is no `Finding`"
            continue
        yield from wrong_words(gem, finding.code, finding.message, finding.option)


def wrong_words(gem: type[Gem[Any]], code: str, message: str, option: object) -> Iterator[str]:
    """What is wrong with the form of a finding, or of a `GemError`."""
    said = f"the message {message!r}"
    if not _CODE.fullmatch(code):
        yield f"{said} has the code {code!r}; codes are letters and digits such as `GB503` or `ACME001`"
    elif code.startswith("GB") and code not in _known_codes():
        yield f"{said} has the code {code}, which the catalogue doesn't have; `gem-bundle explain` lists them"
    if len(message.split()) < 3 or "Traceback" in message or message.rstrip().endswith("."):
        yield f"{said} must be a sentence for the user, without a full stop and without a traceback"
    name = option[0] if isinstance(option, tuple) and option else option
    if name is not None and name not in gem.options_type.model_fields:
        yield f"{said} points at `{name}`, which is no option"


def _say_all(suite: GemConformance, gem: Any) -> None:
    """Call what a check calls."""
    for facts in _input_facts(suite):
        list(gem.check(*facts))
        if hasattr(gem, "infer"):
            gem.infer(*facts)
    for name in ("jars", "places", "outputs"):
        if hasattr(gem, name):
            tuple(getattr(gem, name)())
    dict(gem.session_settings())
    dict(gem.local_settings())


def _input_facts(suite: GemConformance) -> Iterator[tuple[Facts, ...]]:
    """The facts of the gem's inputs as a check may know them: none for a source."""
    if suite.gem.kind == "source":
        yield ()
        return
    count = 1 if suite.gem.kind == "target" else len(getattr(suite, "inputs", ())) or 1
    yield (Facts(),) * count
    yield (Facts(streaming=True, bounded=False),) * count


def _entry(gem: type[Gem[Any]]) -> GemEntry:
    found = registered(gem)
    if found:
        return found[0]
    return GemEntry(gem.kind, gem.__name__.lower(), gem, Origin("", gem.__module__, ""))


def _reference(gem: type[Gem[Any]]) -> str:
    return f"{gem.__module__}:{gem.__qualname__}"


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(step) for step in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]


@cache
def _entries(path: tuple[str, ...]) -> tuple[GemEntry, ...]:  # noqa: ARG001 (kept for each)
    return tuple(load_registry())


@cache
def _loads(entry: GemEntry) -> type[Gem[Any]] | None:
    try:
        return entry.load()
    except PluginError:  # somebody else's, and reported by `gem-bundle gems`
        return None


@cache
def _known_codes() -> frozenset[str]:
    from gem_bundle.check.codes import CODES

    return frozenset(CODES)
