"""What the conformance classes of all kinds have in common: gem, options, which tests apply, waivers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from gem_bundle.diagnostics import Finding
    from gem_bundle.facts import Facts
    from gem_bundle.gem import Gem
    from gem_bundle.options import Options
    from gem_bundle.testing.running.session import Needs

    Suite = type["GemConformance"]

WAIVED = "waived: "
"""How the reason of a waived test begins in the report."""

TOLD = "told by the conformance suite"
"""The property of a test's report that has what its gem's author should know, and that is no failure."""

_CONDITION = "_gem_bundle_applies"
_COSTLY = "_gem_bundle_costly"
_ELSEWHERE = Path("/conformance")  # what relative paths are relative to where nothing is opened
_Test = TypeVar("_Test", bound="Callable[..., None]")


def fail(problem: str) -> NoReturn:
    """End the test with a sentence for the gem's author, without the suite's own traceback."""
    raise pytest.fail.Exception(problem, pytrace=False) from None


def fail_for(problems: Sequence[str]) -> None:
    """End the test with all that is wrong, if anything is."""
    if problems:
        fail(problems[0] if len(problems) == 1 else "\n".join(f"- {problem}" for problem in problems))


def applies(condition: Callable[[Suite, Gem], bool]) -> Callable[[_Test], _Test]:
    """Make pytest collect a test only where it says something.

    Args:
        condition: Told from the author's class, and from a gem with the sample options.
    """

    def mark(test: _Test) -> _Test:
        setattr(test, _CONDITION, condition)
        return test

    return mark


def costly(test: _Test) -> _Test:
    """Mark a test that takes long: where it is waived it isn't run."""
    setattr(test, _COSTLY, True)
    return test


def is_costly(test: object) -> bool:
    """Whether a test is marked as one that takes long.

    Args:
        test: Its function.
    """
    return getattr(test, _COSTLY, False) is True


class GemConformance:
    """The tests of all gems. Derive from the class of the gem's kind, and name the derived class ``Test…``.

    For each test pytest makes one instance, so what a method keeps on `self` is of one test.

    Attributes:
        gem: The class of the gem.
        options: Sample options, as in a pipeline file; by default the gem's `example`. They need not
            lead anywhere: nothing is opened with them.
        unreachable: Options with which the gem's system can't be reached: a port where nobody
            listens, a folder that isn't there. Relative paths are relative to an empty folder.
        secret_samples: Options with secrets in them, where the sample options with one more secret
            wouldn't be valid. Their values are replaced by ones that are looked for.
        waive: The tests that don't hold, and why: ``{"test_name": "reason"}``.
        by_default: Options for which it is meant that the gem's `default_change` says what another value
            does, or the rule; of others that have no word of their own the report tells.
        folder: An empty folder of this test. Relative paths in options are relative to it.
        request: pytest's request, for fixtures of the author's own:
            ``self.request.getfixturevalue("name")``.
    """

    gem: ClassVar[type[Gem[Any]]]
    options: ClassVar[Mapping[str, Any] | None] = None
    unreachable: ClassVar[Mapping[str, Any] | None] = None
    secret_samples: ClassVar[Sequence[Mapping[str, Any]]] = ()
    waive: ClassVar[Mapping[str, str]] = {}
    by_default: ClassVar[Collection[str]] = ()
    folder: Path
    request: pytest.FixtureRequest
    _provided: Mapping[str, Any] | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not hasattr(cls, "gem"):
            return
        tests = _suite_tests(cls)
        _refuse_mistakes(cls, tests)
        sample = _sample_gem(cls)
        for name, test in tests.items():
            condition = getattr(test, _CONDITION, None)
            applicable = sample is None or condition is None or condition(cls, sample)
            setattr(cls, name, test if applicable else None)
        unknown = sorted(name for name in cls.waive if getattr(cls, name, None) is None)
        if unknown:
            raise TypeError(
                f"{cls.__name__}: `waive` names {', '.join(f'`{name}`' for name in unknown)}, which is no "
                "test of this gem; remove it, or correct the name"
            )

    def provide(self) -> Mapping[str, Any]:
        """Make what the gem needs from the outside, and say with which options it finds that.

        Called once, at the beginning of each test that reads or writes with the gem: a test has a
        topic, a folder, a server of its own. It may use `spark`. By default it makes nothing, and the
        options are the sample options; relative paths then lead into `folder`. The options lead elsewhere
        than the sample options, and apart from that are the same: by those the tests were chosen.

        A test that needs several places calls it for each of them, with another empty `folder`, after
        `clean_up`.
        """
        return self.sample()

    @classmethod
    def sample(cls) -> Mapping[str, Any]:
        """The sample options."""
        return cls.gem.example if cls.options is None else cls.options

    def live(self) -> Any:
        """A new gem with the options of `provide`, which is called the first time."""
        if self._provided is None:
            provided = dict(self.provide())
            _refuse_others(type(self), self.made(provided))
            self._provided = provided
        return self.made(self._provided)

    def made(self, options: Mapping[str, Any] | None = None) -> Any:
        """A gem as the runtime makes it.

        Args:
            options: Its options; by default the sample options.
        """
        gem = make(self.gem, self.sample() if options is None else options, self.folder)
        if self.gem.kind == "transform":
            gem.input_names = tuple(getattr(self, "inputs", ()))
        return gem

    def _use_once(self, gem: Any) -> None:
        """Read, apply or write with a gem, in batch where it can, for what happens on the way."""
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def _prepared(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
        self.request = request
        self.folder = tmp_path / "outside"
        self.folder.mkdir()
        reason = self.waive.get(request.function.__name__)
        if reason is not None:
            if is_costly(request.function):
                pytest.xfail(WAIVED + reason)
            request.applymarker(pytest.mark.xfail(reason=WAIVED + reason, strict=True))
        yield
        self.clean_up()

    def clean_up(self) -> None:
        """Remove what `provide` has made, where it doesn't vanish with `folder`.

        Called after each test, and before another call of `provide`.
        """

    @property
    def spark(self) -> SparkSession:
        """The session, which all tests of the run share.

        It is what your own fixture `spark` of the scope ``session`` gives, else a small local one that has
        the jars and settings that the gems of all collected classes ask for.
        """
        for name in ("gem_bundle_spark", "spark"):
            try:
                session: SparkSession = self.request.getfixturevalue(name)
            except pytest.FixtureLookupError:
                continue
            return session
        fail("there is no session: the plugin `gem_bundle` is switched off, and there is no fixture `spark`")

    @property
    def checkpoint(self) -> Path:
        """The checkpoint of this test's query, which isn't within `folder`."""
        return self.folder.with_name("checkpoint")


def refusing(gem: Gem[Any], *inputs: Facts) -> list[Finding]:
    """What a gem's rules refuse, in the Spark that is installed.

    Args:
        gem: The gem.
        inputs: The facts of its inputs.
    """
    from gem_bundle.check.stages.versions import TargetSpark

    spark = TargetSpark(None)
    return [found for found in gem.check(*inputs) if found.severity == "error" and spark.is_told(found)]


def session_needs(items: Iterable[pytest.Item]) -> list[Needs]:
    """What the gems of the collected tests need of a session from its start on: jars and settings."""
    from gem_bundle.run.jars import fill, spark_version
    from gem_bundle.testing.running.session import Needs

    found = []
    for suite in dict.fromkeys(getattr(item, "cls", None) for item in items):
        if isinstance(suite, type) and issubclass(suite, GemConformance):
            gem = _sample_gem(suite)
            if gem is not None:
                jars = [fill(jar, spark_version=spark_version()) for jar in gem.jars()]
                found.append(Needs(jars, gem.session_settings(), gem.local_settings()))
    return found


def make(gem: type[Gem[Any]], options: Mapping[str, Any], folder: Path = _ELSEWHERE) -> Any:
    """A gem with validated options.

    Args:
        gem: Its class.
        options: Its options, in either spelling.
        folder: What relative paths are relative to.
    """
    return gem(validated(gem.options_type, options, folder))


def validated(options_type: type[Options], options: Mapping[str, Any], folder: Path = _ELSEWHERE) -> Options:
    """Options as the runtime reads them."""
    known = {options_type.canonical(key) or key: value for key, value in options.items()}
    return options_type.model_validate(known, context={"base_dir": folder})


def _suite_tests(cls: Suite) -> dict[str, Callable[..., None]]:
    """The suite's own tests, also those that a class between has none of."""
    found: dict[str, Callable[..., None]] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith(__package__ + "."):
            found |= {
                name: cast("Callable[..., None]", value)
                for name, value in vars(base).items()
                if name.startswith("test_") and callable(value)
            }
    return found


def _refuse_mistakes(cls: Suite, tests: Mapping[str, Callable[..., None]]) -> None:
    """Refuse what would make a gem pass that shouldn't."""
    replaced = sorted(name for name in vars(cls) if name in tests)
    if replaced:
        raise TypeError(
            f"{cls.__name__} replaces `{replaced[0]}` of the suite; waive it with a reason: "
            f'waive = {{"{replaced[0]}": "…"}}'
        )
    for name, reason in cls.waive.items():
        if not (isinstance(reason, str) and len(reason.split()) > 1):
            raise TypeError(f"{cls.__name__}: the waiver of `{name}` needs a reason, in a sentence")


def _refuse_others(cls: Suite, provided: Gem[Any]) -> None:
    """Refuse options of `provide` by which a gem makes other promises than the one the tests are for."""
    if _sample_gem(cls) is None:
        return
    others = [
        name
        for name, test in _suite_tests(cls).items()
        if (condition := getattr(test, _CONDITION, None)) is not None
        and condition(cls, provided) != (getattr(cls, name) is not None)
    ]
    if others:
        fail(
            f"`provide` gives options with which other tests apply than with the sample options "
            f"({', '.join(f'`{name}`' for name in others)}): let `options` say what is special about them"
        )


def _sample_gem(cls: Suite) -> Gem[Any] | None:
    """A gem with the sample options; None when it can't be made, which its tests will say."""
    try:
        return cast("Gem[Any]", make(cls.gem, cls.sample()))
    except Exception:  # noqa: BLE001 (whatever it is, `test_example_and_sample_are_valid` tells)
        return None
