"""Declaring options: spellings, what Spark gets, secrets, and how a gem's model is found."""

from typing import Literal

import pytest
from pydantic import SecretStr, ValidationError

from gem_bundle import Field, Options, Source, Transform
from gem_bundle.gem import Gem
from gem_bundle.options import NoOptions, metadata
from gem_bundle.types import BrokerList


class Example(Options):
    """One option of each kind."""

    max_offsets_per_trigger: int | None = Field(None, description="A number.")
    bootstrap_servers: BrokerList = Field(
        ["localhost:9092"], spark="kafka.bootstrap.servers", description="A list."
    )
    header: bool = Field(False, description="A switch.")
    starting: Literal["earliest"] | dict[str, int] | None = Field(None, description="A word or a mapping.")
    password: SecretStr | None = Field(
        None, spark="kafka.ssl.key.password", advanced=True, since="4.1", description="A secret."
    )
    passwords: list[SecretStr] = Field([], passed=False, description="Several.")
    keep: bool = Field(False, passed=False, description="The gem's own.")
    spark_options: dict[str, str | int | bool] = Field({}, description="Raw options.")


class Extended(Example):
    """One option more."""

    extra_one: str = Field("x", description="More.")


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("max_offsets_per_trigger", "max_offsets_per_trigger"),
        ("maxOffsetsPerTrigger", "max_offsets_per_trigger"),
        ("MAXOFFSETSPERTRIGGER", "max_offsets_per_trigger"),
        ("bootstrap_servers", "bootstrap_servers"),
        ("kafka.bootstrap.servers", "bootstrap_servers"),
        ("bootstrapServers", "bootstrap_servers"),
        ("header", "header"),
        ("Header", "header"),
        ("max_offsets", None),
        ("Max_Offsets_Per_Trigger", None),
        ("extraOne", None),
        ("", None),
    ],
)
def test_an_option_is_found_in_sparks_spelling_too(key: str, field: str | None) -> None:
    assert Example.canonical(key) == field


def test_spellings_are_those_of_the_model_and_not_of_its_base() -> None:
    assert Example.canonical("extraOne") is None
    assert Extended.canonical("extraOne") == "extra_one"
    assert Extended.canonical("maxOffsetsPerTrigger") == "max_offsets_per_trigger"


def test_spark_gets_what_was_given_under_its_own_names() -> None:
    options = Example.model_validate(
        {
            "max_offsets_per_trigger": 5,
            "bootstrap_servers": "a:1, b:2",
            "header": True,
            "starting": {"a": 1},
            "password": "hunter2",
            "keep": True,
        }
    )

    assert options.to_spark() == {
        "maxOffsetsPerTrigger": "5",
        "kafka.bootstrap.servers": "a:1,b:2",
        "header": "true",
        "starting": '{"a": 1}',
        "kafka.ssl.key.password": "hunter2",
    }


def test_defaults_are_left_to_spark() -> None:
    assert Example().to_spark() == {}
    assert Example.model_validate({"max_offsets_per_trigger": None}).to_spark() == {}
    assert Example.model_validate({"header": False}).to_spark() == {"header": "false"}


def test_raw_options_win() -> None:
    options = Example.model_validate({"header": True, "spark_options": {"header": False, "x": 1}})

    assert options.to_spark() == {"header": "false", "x": "1"}


def test_secrets_are_known_and_not_printed() -> None:
    options = Example.model_validate({"password": "hunter2", "passwords": ["hunter3"]})

    assert Example.secret_names() == ("password", "passwords")
    assert "hunter" not in repr(options)
    assert "hunter" not in str(options.model_dump())


def test_options_are_immutable_and_unknown_ones_refused() -> None:
    with pytest.raises(ValidationError):
        Example().header = True  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Example.model_validate({"colour": "blue"})


def test_an_error_does_not_show_what_was_given() -> None:
    with pytest.raises(ValidationError) as caught:
        Example.model_validate({"password": ["hunter2"]})

    assert "hunter2" not in str(caught.value)


def test_what_field_keeps() -> None:
    fields = Example.model_fields

    assert metadata(fields["password"]) == {
        "spark": "kafka.ssl.key.password",
        "advanced": True,
        "since": "4.1",
        "passed": True,
    }
    assert metadata(fields["keep"]) == {"passed": False}
    assert fields["keep"].description == "The gem's own."
    assert not fields["keep"].is_required()


def test_a_gem_finds_its_model_in_its_generic_argument() -> None:
    class One(Source[Example]):
        """One."""

    class Two(One):
        """Two."""

    class Three(Transform):
        """Three."""

    class Four(Source[Extended]):
        """Four."""

    class Five(One):
        """Five, which takes other options than the gem it is made of."""

        options_type = Extended

    class Six(Five):
        """Six."""

    assert Five.options_type is Extended
    assert Six.options_type is Extended
    assert One.options_type is Example
    assert Two.options_type is Example
    assert Three.options_type is NoOptions
    assert Four.options_type is Extended
    assert Gem.options_type is NoOptions


def test_a_gems_summary_is_the_first_sentence_of_its_docstring() -> None:
    class One(Source):
        """Read rows
        from somewhere.

        More about it.
        """

    class Two(Source):
        __doc__ = None

    assert One.summary() == "Read rows from somewhere."
    assert Two.summary() == ""
