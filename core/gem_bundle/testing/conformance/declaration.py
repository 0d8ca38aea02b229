"""What a gem says about itself: its registration, its description, its example, its own rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from gem_bundle.changes.rules.options import without_a_word
from gem_bundle.diagnostics import Finding, listed_names
from gem_bundle.semantics import OptionChange
from gem_bundle.testing.conformance.inputs import input_facts
from gem_bundle.testing.conformance.outside import kept_inside
from gem_bundle.testing.conformance.registration import entry_of, registered
from gem_bundle.testing.conformance.suite import TOLD, GemConformance, fail, fail_for, make, refusing
from gem_bundle.testing.conformance.wording import wrong_findings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.gem import Gem


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

        from gem_bundle.describe import describe_gem, semantics_in_words
        from gem_bundle.describe.markdown import markdown

        described = describe_gem(entry_of(self.gem))
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
        for facts in input_facts(self):
            found = list(gem.check(*facts))
            problems += list(wrong_findings(self.gem, found))
            if all(isinstance(finding, Finding) for finding in found):
                problems += [
                    f"`check` refuses the sample options: {finding.message}"
                    for finding in refusing(gem, *facts)
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

    def test_says_what_its_options_mean(self) -> None:
        """`change` answers for every option; the report tells of which nothing says what a change does."""
        gem = self.made()
        problems = []
        for name, value in gem.options.model_dump(mode="json").items():
            try:
                said = gem.change(name, value)
            except Exception as error:  # noqa: BLE001 (a gem may raise anything here, and none is right)
                problems.append(f"`change` fails for `{name}`: {type(error).__name__}: {error}")
                continue
            if said is not None and not isinstance(said, OptionChange):
                problems.append(f"`change` gives {said!r} for `{name}`; give an `OptionChange`, or None")
        unknown = sorted(set(self.by_default) - set(self.gem.options_type.model_fields))
        problems += [f"`by_default` names `{name}`, which is no option" for name in unknown]
        fail_for(problems)
        new = [name for name in without_a_word(gem) if name not in self.by_default]
        if new:
            self.request.node.user_properties.append((TOLD, _taken_for(gem, new)))


def _taken_for(gem: Gem[Any], options: list[str]) -> str:
    """What a plan takes another value of options for, of which nothing is said."""
    default = gem.options_type.default_change
    taken = (
        f"`{default}`, the gem's default" if default else "`mixed` where state is kept, else `from_now_on`"
    )
    return (
        f"nothing says what another value of {listed_names(options)} does to a pipeline that runs: a plan "
        f"takes it for {taken}. Say it with `Field(change=…)` or `change`, or name in `by_default` what is "
        "meant so"
    )


def wrong_method(method: str, promised: bool, there: bool) -> Iterator[str]:
    """What is wrong where the semantics promise a method that isn't there, or the other way round."""
    if promised and not there:
        yield f"the semantics promise what needs the method `{method}`, and there is none"
    if there and not promised:
        yield f"there is a method `{method}`, and the semantics say that it can't be used"


def _say_all(suite: GemConformance, gem: Any) -> None:
    """Call what a check calls."""
    for facts in input_facts(suite):
        list(gem.check(*facts))
        if hasattr(gem, "infer"):
            gem.infer(*facts)
    for name in ("jars", "places", "outputs"):
        if hasattr(gem, name):
            tuple(getattr(gem, name)())
    dict(gem.session_settings())
    dict(gem.local_settings())


def _reference(gem: type[Gem[Any]]) -> str:
    return f"{gem.__module__}:{gem.__qualname__}"


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(step) for step in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]
