"""The options of the target `hec`."""

from __future__ import annotations

from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr, WithJsonSchema, model_validator

from gem_bundle import Field, Options
from gem_bundle.types import ByteSize, DataPath, FixedDuration

PATH = "/services/collector/event"
LOCAL = ("localhost", "127.0.0.1", "::1")


def _collector(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("write the collector's address as `https://host:8088`")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a collector is entered with a token: take user and password out, and give `token`")
    if parts.query or parts.fragment:
        raise ValueError("the address ends with its path: take out what stands behind `?` or `#`")
    try:
        port = parts.port
    except ValueError:
        raise ValueError("the port is a number up to 65535") from None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/') or PATH}"


CollectorUrl = Annotated[
    str,
    AfterValidator(_collector),
    WithJsonSchema({"type": "string", "examples": ["https://splunk.example.com:8088"]}),
]
"""The address of a collector; without a path it gets Splunk's."""


def seconds(duration: str) -> float:
    """The seconds in a `FixedDuration`, which is a text such as ``500ms``."""
    return int(duration.removesuffix("ms")) / 1000


class HecOptions(Options):
    """Options of the target `hec`."""

    url: CollectorUrl = Field(
        description=f"The collector's address. Without a path it gets `{PATH}`.",
        examples=["https://splunk.example.com:8088"],
    )
    token: SecretStr = Field(
        description="The collector's token.", examples=["${secret:splunk/token}"], min_length=1
    )
    event_column: str | None = Field(
        None,
        min_length=1,
        description="The column that is the event: a text as it is, anything with parts as JSON. By default "
        "the event is an object of all columns that none of the other options names.",
    )
    time_column: str | None = Field(
        None,
        min_length=1,
        description="The column with the time of the event: a timestamp, a date, or seconds since 1970. "
        "Where there is none, the collector takes the time at which it gets the event.",
    )
    index: str | None = Field(
        None, min_length=1, description="The index that events go to; by default the token's."
    )
    index_column: str | None = Field(
        None, min_length=1, description="The column with the index; where it is null, `index` counts."
    )
    sourcetype: str | None = Field(
        None, min_length=1, description="The source type of the events, such as `_json`."
    )
    sourcetype_column: str | None = Field(
        None,
        min_length=1,
        description="The column with the source type; where it is null, `sourcetype` counts.",
    )
    source: str | None = Field(None, min_length=1, description="What the events come from.")
    source_column: str | None = Field(
        None,
        min_length=1,
        description="The column with what an event comes from; where it is null, `source` counts.",
    )
    host: str | None = Field(None, min_length=1, description="The host that the events come from.")
    host_column: str | None = Field(
        None, min_length=1, description="The column with the host; where it is null, `host` counts."
    )
    max_payload: ByteSize = Field(
        1_000_000,
        ge=1_000,
        description="The most bytes in one POST, before they are compressed; events are split over as many "
        "as it takes. The collector's own limit may be lower or higher.",
    )
    gzip: bool = Field(False, description="Compress what is sent.")
    rejects: bool = Field(
        False,
        description="Hand events that the collector refuses (400, 413), that are larger than `max_payload`, "
        "or empty, to the output `rejected`, and send the others. Without it the query fails at the first.",
        change="from_now_on",
    )
    acknowledge: bool = Field(
        False,
        description="Wait until the indexers have written the events, and not only until the collector has "
        "taken them. The token must have indexer acknowledgement switched on.",
    )
    acknowledge_within: FixedDuration = Field(
        "5 minutes",
        validate_default=True,
        description="How long to wait for that after the last POST of a partition; then the query fails.",
        advanced=True,
    )
    verify_tls: bool = Field(
        True, description="Whether the collector's certificate must be one that is trusted."
    )
    ca_file: DataPath | None = Field(
        None,
        description="The file with the certificates to trust, as PEM, in place of the system's. It is read "
        "on the driver only.",
    )
    timeout: FixedDuration = Field(
        "30 seconds",
        validate_default=True,
        description="How long to wait for a connection and for each part of an answer.",
        advanced=True,
    )
    retry_for: FixedDuration = Field(
        "5 minutes",
        validate_default=True,
        description="How long to go on trying to send one POST; then the query fails, and its micro-batch is "
        "sent again at the next start.",
    )
    backoff: FixedDuration = Field(
        "500 milliseconds",
        validate_default=True,
        description="How long to wait before the second try; each further wait is twice as long. Half of a "
        "wait is random, and none is shorter than what the collector asks for in `Retry-After`.",
        advanced=True,
    )
    max_backoff: FixedDuration = Field(
        "30 seconds", validate_default=True, description="The longest of those waits.", advanced=True
    )

    @property
    def metadata(self) -> dict[str, tuple[str | None, str | None]]:
        """What says where an event belongs: by its key in the event, the column and the constant."""
        return {
            "host": (self.host_column, self.host),
            "source": (self.source_column, self.source),
            "sourcetype": (self.sourcetype_column, self.sourcetype),
            "index": (self.index_column, self.index),
        }

    def columns(self) -> dict[str, str]:
        """The columns that options name, by the option."""
        found = {"event_column": self.event_column, "time_column": self.time_column}
        found |= {f"{key}_column": column for key, (column, _) in self.metadata.items()}
        return {option: column for option, column in found.items() if column is not None}

    @property
    def in_the_clear(self) -> bool:
        """Whether the token and the events go over a network unencrypted."""
        parts = urlsplit(self.url)
        return parts.scheme == "http" and parts.hostname not in LOCAL

    @model_validator(mode="after")
    def _options_go_together(self) -> Self:
        if self.ca_file is not None and not self.verify_tls:
            raise ValueError("`ca_file` has no effect with `verify_tls: false`; remove one of them")
        if self.url.startswith("http:"):
            given = [name for name in ("verify_tls", "ca_file") if name in self.model_fields_set]
            if given:
                raise ValueError(f"`{given[0]}` has no effect with an address that begins with `http:`")
        if seconds(self.backoff) > seconds(self.max_backoff):
            raise ValueError("`backoff` is the first wait, and can't be longer than `max_backoff`")
        if "acknowledge_within" in self.model_fields_set and not self.acknowledge:
            raise ValueError("`acknowledge_within` has no effect without `acknowledge: true`")
        return self
