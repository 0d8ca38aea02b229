"""What `from_avro` and `to_avro` have in common: a registry of schemas."""

import re
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, SecretStr, model_validator

from gem_bundle import Field
from gem_bundle.schema import SchemaOptions
from gem_bundle.types import ExposedSecretError, FixedDuration, StringList, TextFile, secret_in

if TYPE_CHECKING:
    from gem_avro.registry import Registry

AVRO_JAR = "org.apache.spark:spark-avro_{scala}:{spark}"
AVRO_CLASS = "org.apache.spark.sql.avro.AvroFileFormat"
HEADER_BYTES = 5
CONNECT_SECONDS = 2.5


def _check_authority(text: str) -> str:
    import ssl

    try:
        ssl.create_default_context(cadata=text)
    except (ssl.SSLError, ValueError):
        raise ValueError("the file has no certificates: they are PEM, with BEGIN CERTIFICATE") from None
    return text


def _check_urls(urls: list[str]) -> list[str]:
    if not urls:
        raise ValueError("name at least one address, such as `http://localhost:8081`")
    for url in urls:
        if re.match(r"(?:\w+:)?(?://)?[^/?#\s]*@", url) or secret_in(url):
            raise ExposedSecretError(
                "a login in it would be printed: give it by `registry_user` and `registry_password`"
            )
        if not re.match(r"https?://[^\s/?#@]+(/[^\s?#]*)?\Z", url):
            raise ValueError(f"write it as `http://host:8081` or `https://host/path`; `{url}` is not one")
    return urls


Authority = Annotated[TextFile, AfterValidator(_check_authority)]
"""A file with certificates in PEM; the gem reads what is in it, so that executors need no file."""

Addresses = Annotated[StringList, AfterValidator(_check_urls)]
"""The addresses of a registry."""


class RegisterOptions(SchemaOptions):
    """Options with one called ``register``: classes have a method of that name, and pydantic would warn."""

    if not TYPE_CHECKING:

        class _Absent:
            def __get__(self, instance: object, owner: type) -> Any:
                raise AttributeError("register")

        register: ClassVar = _Absent()


class RegistryOptions(RegisterOptions):
    """How a schema registry is reached, and the subject in it."""

    registry: Addresses | None = Field(
        None,
        passed=False,
        change="continues",
        description="The address of a schema registry, by its REST interface; several where one may be down.",
        examples=["http://localhost:8081"],
    )
    registry_user: str | None = Field(
        None, min_length=1, passed=False, change="continues", description="The user to log in to it as."
    )
    registry_password: SecretStr | None = Field(
        None,
        passed=False,
        change="continues",
        description="The user's password.",
        examples=["${secret:registry/password}"],
    )
    registry_token: SecretStr | None = Field(
        None,
        passed=False,
        change="continues",
        description="A token to log in with, in the place of a user.",
        examples=["${secret:registry/token}"],
    )
    registry_ca_file: Authority | None = Field(
        None,
        passed=False,
        change="continues",
        advanced=True,
        description="A file beside the pipeline with the certificates, in PEM, of those who may have signed "
        "the registry's; by default those that the system trusts.",
        examples=["ca.pem"],
    )
    registry_timeout: FixedDuration = Field(
        "5000ms",
        passed=False,
        change="continues",
        advanced=True,
        description="How long the registry may take to answer. What may pass is tried three times.",
        examples=["5 seconds"],
    )
    subject: str | None = Field(
        None,
        min_length=1,
        passed=False,
        description="The subject in the registry; by default `subject_strategy` makes its name.",
        examples=["clicks-value"],
    )
    subject_strategy: Literal["topic_name", "record_name", "topic_record_name"] = Field(
        "topic_name",
        passed=False,
        description="How the subject is called: `topic_name` is `TOPIC-value`, `record_name` the record's "
        "full name, `topic_record_name` `TOPIC-` and that.",
    )
    topic: str | None = Field(
        None,
        min_length=1,
        passed=False,
        description="The topic, for the subject's name.",
        examples=["clicks"],
    )
    part: Literal["value", "key"] = Field(
        "value", passed=False, description="Which part of a record the messages are, for the subject's name."
    )

    @model_validator(mode="after")
    def _whole_registry(self) -> Self:
        about = {"subject", "subject_strategy", "topic", "part", "record", "register"}
        given = [
            name
            for name in type(self).model_fields
            if name in self.model_fields_set and (name in about or name.startswith("registry_"))
        ]
        if self.registry is None and given:
            raise ValueError(f"`{given[0]}` is about a registry: give its address by `registry`")
        if self.registry_token is not None and self.registry_user is not None:
            raise ValueError("give `registry_user` or `registry_token`, not both")
        if self.registry_password is not None and self.registry_user is None:
            raise ValueError("`registry_password` is a user's: give that by `registry_user`")
        naming = [name for name in ("topic", "subject_strategy", "part") if name in self.model_fields_set]
        if self.subject is not None and naming:
            raise ValueError(f"`subject` is the whole name: remove `{naming[0]}`")
        return self

    def client(self) -> "Registry":
        """The registry; it has to be given."""
        from gem_avro.registry import Registry, authorization

        password, token = self.registry_password, self.registry_token
        return Registry(
            tuple(self.registry or ()),
            authorization(
                self.registry_user,
                None if password is None else password.get_secret_value(),
                None if token is None else token.get_secret_value(),
            ),
            self.registry_ca_file,
            int(self.registry_timeout.removesuffix("ms")) / 1000,
        )

    def subject_for(self, record: str | None) -> str | None:
        """The subject; None where something is missing that its name is made of.

        Args:
            record: The full name of the record, as far as it is known.
        """
        if self.subject is not None:
            return self.subject
        if self.subject_strategy == "record_name":
            return record
        second = self.part if self.subject_strategy == "topic_name" else record
        return None if self.topic is None or second is None else f"{self.topic}-{second}"

    def missing_for_subject(self) -> str:
        """What is missing that its name is made of, as a sentence."""
        if self.subject_strategy == "topic_name" or (
            self.subject_strategy == "topic_record_name" and self.topic is None
        ):
            return "the registry's subject isn't known: give `topic`, or the whole name by `subject`"
        return (
            f"`{self.subject_strategy}` takes the record's full name, which isn't known: give the whole name "
            "by `subject`"
        )


def header(schema_id: int) -> bytes:
    """What stands before a message with the id of its schema: a zero, and the id in four bytes."""
    return b"\x00" + schema_id.to_bytes(HEADER_BYTES - 1, "big")
