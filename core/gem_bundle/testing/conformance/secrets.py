"""The secrets of a gem: never printed, whatever is printed of it."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, get_args

from pydantic import SecretStr, ValidationError

from gem_bundle.diagnostics import listed_names
from gem_bundle.testing.conformance.inputs import input_facts
from gem_bundle.testing.conformance.options import every_option
from gem_bundle.testing.conformance.registration import entry_of
from gem_bundle.testing.conformance.suite import GemConformance, applies, fail, fail_for, validated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pytest

MARK = "s3cr3t-of-the-c0nformance-suite"
"""What stands for every secret, and is looked for in everything that is printed."""

_SOUNDS_SECRET = re.compile(
    r"(^|_)(password|passwd|passphrase|secret|token|api_key|access_key|private_key|credentials?)($|_value$)"
)


class SecretTests(GemConformance):
    """Secrets are declared as such, and don't come out again."""

    def test_secrets_are_declared(self) -> None:
        """An option that sounds like a secret has the type `SecretStr`."""
        fail_for(
            [
                f"the option `{path}` sounds like a secret; declare it as `pydantic.SecretStr`"
                for path, model, name in every_option(self.gem.options_type)
                if _SOUNDS_SECRET.search(name) and _is_open_text(model.model_fields[name].annotation)
            ]
        )

    @applies(lambda suite, gem: bool(gem.options_type.secret_names()))  # noqa: ARG005
    def test_secrets_are_not_printed(self, caplog: pytest.LogCaptureFixture) -> None:
        """The secrets are in no text of the gem, its options, its findings, its errors and its logs."""
        uncovered = set(self.gem.options_type.secret_names())
        problems: dict[str, None] = {}
        for options in self._with_secrets():
            given = {name for name in uncovered if name in options}
            uncovered -= given
            gem = self.made(options)
            with caplog.at_level(logging.DEBUG):
                for what, text in self._texts(gem, options):
                    if MARK in text:
                        problems[f"{what} shows a secret: {_around(text)}"] = None
            if MARK in caplog.text:
                problems["a log record shows a secret"] = None
        if uncovered:
            names = listed_names(sorted(uncovered))
            problems[
                f"the sample options with {names} are refused; give valid ones with that in `secret_samples`"
            ] = None
        fail_for(list(problems))

    def _with_secrets(self) -> Iterator[dict[str, Any]]:
        """Valid options in which the secrets are ours."""
        options_type = self.gem.options_type
        names = options_type.secret_names()
        alone = [{**self.sample(), name: MARK} for name in names]
        for sample in (*self.secret_samples, *alone):
            known = {options_type.canonical(key) or key: value for key, value in sample.items()}
            options = {key: MARK if key in names else value for key, value in known.items()}
            try:
                validated(options_type, options, self.folder)
            except ValidationError as error:
                if sample in alone:
                    continue  # it may be valid with another option only
                fail(f"the options in `secret_samples` are refused: {error}")
            yield options

    def _texts(self, gem: Any, options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Everything that may be printed of a gem, and what it is."""
        from gem_bundle.describe import describe_gem

        yield "`repr` of the gem", repr(gem)
        yield "`str` of the gem", str(gem)
        yield "`repr` of its options", repr(gem.options)
        yield "`str` of its options", str(gem.options)
        yield "the options as JSON", gem.options.model_dump_json()
        yield "its description", repr(describe_gem(entry_of(self.gem)))
        for name in ("places", "jars", "local_settings"):
            if hasattr(gem, name):
                yield f"`{name}`", repr(list(_items(getattr(gem, name)())))
        for facts in input_facts(self):
            yield "`check`", repr(list(gem.check(*facts)))
            if hasattr(gem, "infer"):
                yield "`infer`", repr(gem.infer(*facts))
        try:
            yield "`connect`", repr(list(gem.connect()))
        except Exception as error:  # noqa: BLE001 (another test is about what it may raise)
            yield "what `connect` raises", f"{error!r} {error}"
        try:
            validated(self.gem.options_type, {**options, "no_such_option": 1})
        except ValidationError as error:
            yield "what is said about options that are refused", str(error)


def _items(value: Any) -> Iterator[object]:
    if hasattr(value, "items"):
        for key, found in value.items():
            yield key, found if isinstance(found, str) else list(found)
    else:
        yield from value


def _is_open_text(annotation: Any) -> bool:
    if annotation is SecretStr:
        return False
    return annotation is str or any(_is_open_text(argument) for argument in get_args(annotation))


def _around(text: str) -> str:
    at = text.index(MARK)
    return f"…{text[max(at - 40, 0) : at]}***…"
