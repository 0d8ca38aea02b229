"""The options of a gem: documented, with defaults that are valid, none unknown, none ignored."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, ValidationError

from gem_bundle.describe.words import models_in
from gem_bundle.options import Options, metadata
from gem_bundle.testing.conformance.reading import OwnCode
from gem_bundle.testing.conformance.suite import GemConformance, fail, fail_for, validated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import BaseModel

_UNKNOWN = "no_such_option"
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


class OptionTests(GemConformance):
    """The options are declared once, and completely."""

    def test_options_are_documented(self) -> None:
        """Every option has a sentence to its user."""
        problems = []
        for path, model, name in every_option(self.gem.options_type):
            description = (model.model_fields[name].description or "").strip()
            if len(description.split()) < 2 or not description.endswith((".", ":", "…")):
                problems.append(f"the option `{path}` needs a description, a sentence to its user")
        fail_for(problems)

    def test_option_names_are_snake_case(self) -> None:
        """An option's name is in snake_case; Spark's spelling is accepted beside it."""
        fail_for(
            [
                f"the option `{path}` must be named in snake_case"
                for path, _, name in every_option(self.gem.options_type)
                if not _NAME.fullmatch(name)
            ]
        )

    def test_defaults_are_valid(self) -> None:
        """Every default would be accepted if a user wrote it."""
        try:
            _with_checked_defaults(self.gem.options_type, self.sample())
        except ValidationError as error:
            sample = {self.gem.options_type.canonical(key) or key for key in self.sample()}
            fail_for(
                [
                    f"the default of the option `{found['loc'][0]}` is refused: {found['msg']}"
                    for found in error.errors()
                    if found["loc"] and found["loc"][0] not in sample
                ]
            )

    def test_unknown_options_are_refused(self) -> None:
        """A misspelt option is an error, also inside another option."""
        options_type = self.gem.options_type
        problems = []
        try:
            validated(options_type, {**self.sample(), _UNKNOWN: 1})
        except ValidationError as error:
            if not any(_UNKNOWN in found["loc"] for found in error.errors()):
                problems.append(f"an unknown option is refused, and its name isn't said: {error}")
        else:
            problems.append("an unknown option is accepted; derive the options from `gem_bundle.Options`")
        for path, model in _models(options_type):
            if model.model_config.get("extra") != "forbid":
                problems.append(f"unknown keys of `{path}` are accepted: set `extra='forbid'` in its model")
        fail_for(problems)

    def test_options_can_not_be_changed(self) -> None:
        """Options are of one node of a pipeline, and stay as its file says."""
        options_type = self.gem.options_type
        problems = []
        if not issubclass(options_type, Options):
            problems.append("the model of the options must derive from `gem_bundle.Options`")
        if not options_type.model_config.get("frozen"):
            problems.append("the options can be changed after they were validated: keep `frozen=True`")
        fail_for(problems)

    def test_the_json_schema_is_valid(self) -> None:
        """Editors get a schema that is one, takes what a check takes, and refuses unknown options."""
        from gem_bundle.describe import json_schema

        try:
            from jsonschema import Draft202012Validator
            from jsonschema.exceptions import SchemaError
        except ImportError:
            fail("the test needs jsonschema: `pip install jsonschema`")
        try:
            schema = json_schema(self.gem.options_type)
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            fail(f"the JSON Schema of the options is none: {error.message}")
        except Exception as error:  # noqa: BLE001 (pydantic raises what a type's own schema raises)
            fail(f"the options have no JSON Schema: {type(error).__name__}: {error}")
        validator = Draft202012Validator(schema)
        problems = [
            f"the JSON Schema refuses the {what}: {error.message}"
            for what, options in (("example", self.gem.example), ("sample options", self.sample()))
            for error in validator.iter_errors(_plain(options))
        ]
        if validator.is_valid({**_plain(self.sample()), _UNKNOWN: 1}):
            problems.append("the JSON Schema accepts unknown options")
        fail_for(problems)

    def test_no_option_is_ignored(self) -> None:
        """Every option is read somewhere in the gem's own code, or handed to Spark with `to_spark`.

        It reads the code of the gem's package, and what validates an option doesn't count. So an option
        that is read to no effect isn't found.
        """
        code = OwnCode.of(self.gem)
        handed_on = code.names & {"to_spark", "model_dump", "model_dump_json"}
        problems = []
        for path, model, name in every_option(self.gem.options_type):
            if name in code.names or name in code.texts:
                continue
            passed = metadata(model.model_fields[name]).get("passed", True) or name == "spark_options"
            if not (handed_on and (passed or handed_on != {"to_spark"})):
                problems.append(f"the option `{path}` is ignored: nothing in {code.package} reads it")
        fail_for(problems)


def every_option(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, type[BaseModel], str]]:
    """The options of a model and of the models in them: how they are called, where, and by which name."""
    for name, info in model.model_fields.items():
        yield prefix + name, model, name
        for inner in models_in(info.annotation):
            yield from every_option(inner, f"{prefix}{name}.")


def _models(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    for name, info in model.model_fields.items():
        for inner in models_in(info.annotation):
            yield prefix + name, inner
            yield from _models(inner, f"{prefix}{name}.")


def _with_checked_defaults(options_type: type[Options], options: Mapping[str, Any]) -> None:
    checked = type(
        options_type.__name__,
        (options_type,),
        {
            "model_config": ConfigDict(validate_default=True),
            "__module__": options_type.__module__,
            "__doc__": options_type.__doc__,
        },
    )
    validated(checked, options)


def _plain(value: Any) -> Any:
    """A value as a JSON parser gives it."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
