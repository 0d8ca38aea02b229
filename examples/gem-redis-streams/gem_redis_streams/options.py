"""The options of the source `redis_streams`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr, WithJsonSchema, model_validator

from gem_bundle import Field, Options
from gem_bundle.types import DataPath, FixedDuration, StringList
from gem_redis_streams.ids import EntryId

EARLIEST = "earliest"
LATEST = "latest"


def _server(url: str) -> str:
    parts = urlsplit(url)
    database = parts.path.strip("/") or "0"
    if parts.scheme not in ("redis", "rediss") or not parts.hostname:
        raise ValueError("write the server's address as `redis://host:6379`, or `rediss://host:6379` for TLS")
    if parts.username is not None or parts.password is not None:
        raise ValueError("take user and password out of the address, and give `username` and `password`")
    if not database.isdecimal() or parts.query or parts.fragment:
        raise ValueError(
            "behind the port there is the number of a database at most, as in `redis://host:6379/0`"
        )
    try:
        port = parts.port or 6379
    except ValueError:
        raise ValueError("the port is a number up to 65535") from None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port}/{int(database)}"


RedisUrl = Annotated[
    str,
    AfterValidator(_server),
    WithJsonSchema({"type": "string", "examples": ["redis://localhost:6379"]}),
]
"""The address of a Redis server, with its database."""


def _places(value: Any) -> Any:
    if isinstance(value, str):
        if value in (EARLIEST, LATEST):
            return value
        raise ValueError("write `earliest`, `latest`, or an id for each stream: `{orders: 1767600000000-0}`")
    if not isinstance(value, dict) or not value:
        return value
    return {str(stream): _place(place) for stream, place in value.items()}


def _place(place: Any) -> str:
    if place in (EARLIEST, LATEST):
        return str(place)
    if isinstance(place, bool) or not isinstance(place, str | int):
        raise ValueError(f"an id is written as `1767600000000-0`, and `{place}` isn't one")
    return str(EntryId.parse(str(place)))


_PLACE = {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0}]}

Places = Annotated[
    Literal["earliest", "latest"] | dict[str, str],
    BeforeValidator(_places),
    WithJsonSchema(
        {"anyOf": [{"enum": [EARLIEST, LATEST]}, {"type": "object", "additionalProperties": _PLACE}]}
    ),
]
"""A word for all streams, or a word or an id for each of them."""


class RedisStreamsOptions(Options):
    """Options of the source `redis_streams`."""

    url: RedisUrl = Field(
        description="The server: `redis://host:6379`, `rediss://…` for TLS, with the number of the database "
        "behind it if it isn't 0.",
        examples=["redis://localhost:6379"],
        place=True,
    )
    streams: StringList = Field(
        min_length=1, description="The keys of the streams to read.", examples=[["orders"]]
    )
    username: str | None = Field(
        None, min_length=1, description="The user to log in as; without one it is Redis's `default`."
    )
    password: SecretStr | None = Field(
        None, description="The user's password.", examples=["${secret:redis/password}"]
    )
    verify_tls: bool = Field(
        True, description="Whether the server's certificate must be one that is trusted."
    )
    ca_file: DataPath | None = Field(
        None,
        description="The file with the certificates to trust, as PEM, in place of the system's. It is read "
        "on the driver only.",
    )
    starting_ids: Places = Field(
        EARLIEST,
        description="Where the first run starts: with all entries that are there (`earliest`), with what "
        "comes next (`latest`), or with an id for each stream, which is the first to be read; milliseconds "
        "alone are one too. A restarted stream continues where it was.",
        examples=[LATEST, {"orders": "1767600000000-0"}],
    )
    ending_ids: Places | None = Field(
        None,
        description="Where a batch read ends: `latest` (the default), or the last id to read of each stream.",
        examples=[{"orders": "1767686399999-0"}],
    )
    max_entries_per_trigger: int | None = Field(
        None,
        gt=0,
        description="The most entries in one micro-batch, over all streams; by default all.",
        since="4.2",
    )
    entries_per_partition: int = Field(
        10_000,
        gt=0,
        description="The most entries that one task of Spark reads; more of one stream are split.",
        advanced=True,
    )
    fetch_size: int = Field(
        1_000, gt=0, le=100_000, description="The most entries asked for at once.", advanced=True
    )
    values: Literal["text", "binary"] = Field(
        "text", description="What the values of an entry's fields are: texts in UTF-8, or any bytes."
    )
    fail_on_data_loss: bool = Field(
        True,
        description="Fail when entries were deleted before they were read: the stream was trimmed, or made "
        "anew. Otherwise that is logged, and reading goes on with what is left.",
    )
    timeout: FixedDuration = Field(
        "10 seconds",
        validate_default=True,
        description="How long to wait for the server, each time.",
        advanced=True,
    )

    @property
    def only_new(self) -> bool:
        """Whether a first run reads only what comes after its start."""
        places = self.starting_ids
        return places == LATEST or (isinstance(places, dict) and set(places.values()) == {LATEST})

    @model_validator(mode="after")
    def _options_go_together(self) -> Self:
        if len(set(self.streams)) < len(self.streams):
            raise ValueError("a stream is named twice in `streams`")
        for name in ("starting_ids", "ending_ids"):
            places = getattr(self, name)
            unknown = (
                [stream for stream in places if stream not in self.streams]
                if isinstance(places, dict)
                else []
            )
            if unknown:
                raise ValueError(f"`{name}` names `{unknown[0]}`, which is not one of `streams`")
        if self.username is not None and self.password is None:
            raise ValueError("`username` has no effect without `password`")
        if self.ca_file is not None and not self.verify_tls:
            raise ValueError("`ca_file` has no effect with `verify_tls: false`; remove one of them")
        if self.url.startswith("redis:"):
            given = [name for name in ("verify_tls", "ca_file") if name in self.model_fields_set]
            if given:
                raise ValueError(f"`{given[0]}` is for TLS: write `rediss:` in place of `redis:` in `url`")
        ends = [self.ending_ids] if isinstance(self.ending_ids, str) else (self.ending_ids or {}).values()
        if EARLIEST in ends:
            raise ValueError(
                "reading can't end where the streams start: write `latest` or an id in `ending_ids`"
            )
        return self
