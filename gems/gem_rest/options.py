"""The options of `rest_enrich`."""

import base64
import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, SecretStr, model_validator

from gem_bundle import Field
from gem_bundle.schema import SchemaOptions, columns_of
from gem_bundle.types import ExposedSecretError, Expression, FixedDuration, ReadSchema
from gem_rest.calling import Calls

_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_OWN = {"authorization", "proxy-authorization", "cookie", "content-length", "host", "transfer-encoding"}


def _check_url(url: str) -> str:
    if re.match(r"(?:\w+:)?(?://)?[^/?#{}\s]*@", url):
        raise ExposedSecretError(
            "a login in it would be printed: give it by `token`, or by `user` and `password`"
        )
    if not re.match(r"https?://[^/?#{}@\s]+(?:[/?#]|\Z)", url):
        raise ValueError(
            "write it as `https://host/path`; columns as `{name}` are for its path and behind, and a login "
            "has options of its own"
        )
    pieces_of(url)
    return url


def pieces_of(url: str) -> list[tuple[str, str | None]]:
    """The parts of an address: texts, each with the column behind it, or None at its end.

    Args:
        url: The address, with columns in braces.

    Raises:
        ValueError: When a brace stands alone or nothing is in it.
    """
    found: list[tuple[str, str | None]] = []
    text, position = "", 0
    for match in _PLACE.finditer(url):
        text += url[position : match.start()]
        position = match.end()
        if match[0] in {"{{", "}}"}:
            text += match[0][0]
        elif match[1] is None or not match[1].strip():
            raise ValueError("write a column as `{name}`, and a brace that is one as `{{` or `}}`")
        else:
            found.append((text, match[1].strip()))
            text = ""
    return [*found, (text + url[position:], None)]


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER.match(name) or re.search(r"[\r\n]", value):
            raise ValueError(f"`{name}` can't be a header with that value")
        if name.lower() in _OWN:
            raise ValueError(f"`{name}` isn't given here: logins have `token`, `user` and `api_key`")
    return headers


Address = Annotated[str, AfterValidator(_check_url)]
Headers = Annotated[dict[str, str], AfterValidator(_check_headers)]


class RestEnrichOptions(SchemaOptions):
    """Options of the transform `rest_enrich`."""

    default_change = "from_now_on"

    url: Address = Field(
        passed=False,
        description="The address that is called for each row. A column in braces is put into it, escaped as "
        "addresses want it.",
        examples=["https://api.example.com/users/{user_id}?fields=name"],
    )
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = Field(
        "GET", passed=False, description="The method of the request."
    )
    body: dict[str, Expression] | None = Field(
        None,
        passed=False,
        min_length=1,
        description="What is sent, as an object of JSON: its fields, each with an expression over columns.",
        examples=[{"id": "user_id", "city": "upper(city)"}],
    )
    schema: ReadSchema = Field(  # type: ignore[assignment]
        passed=False,
        description="The fields to take of the answer, an object of JSON; one that it lacks is null.",
        examples=["name string, score double"],
    )
    column: str = Field(
        "answer", min_length=1, passed=False, description="The column that gets them, a struct."
    )
    headers: Headers = Field(
        {},
        passed=False,
        description="Headers of the request that are no secrets.",
        examples=[{"Accept-Language": "en"}],
    )
    token: SecretStr | None = Field(
        None,
        passed=False,
        change="continues",
        description="A token to log in with, sent as `Authorization: Bearer`.",
        examples=["${secret:api/token}"],
    )
    user: str | None = Field(
        None, min_length=1, passed=False, change="continues", description="The user to log in as."
    )
    password: SecretStr | None = Field(
        None, passed=False, change="continues", description="The user's password."
    )
    api_key: SecretStr | None = Field(
        None,
        passed=False,
        change="continues",
        description="A key that is sent in a header of its own.",
        examples=["${secret:api/key}"],
    )
    api_key_header: str = Field(
        "X-Api-Key", pattern=_HEADER.pattern.replace("\\Z", "$"), passed=False, description="That header."
    )
    timeout: FixedDuration = Field(
        "10000ms",
        passed=False,
        change="continues",
        description="How long the service may take to connect, and between two parts of its answer.",
        examples=["5 seconds"],
    )
    retries: int = Field(
        3,
        ge=0,
        le=20,
        passed=False,
        change="continues",
        description="How often a call is tried again that had no answer, or HTTP 408, 425, 429, 500, 502, "
        "503 or 504.",
    )
    backoff: FixedDuration = Field(
        "500ms",
        passed=False,
        change="continues",
        description="How long to wait before the second try; it doubles with each, up to 30 seconds. What "
        "the service asks for by `Retry-After` is waited at least.",
    )
    longest_wait: FixedDuration = Field(
        "60000ms",
        passed=False,
        change="continues",
        description="What is waited for by `Retry-After` at most; a service that asks for more isn't tried "
        "again.",
    )
    per_second: float | None = Field(
        None,
        gt=0,
        passed=False,
        change="continues",
        description="How many requests a task begins in a second at most. Tasks run side by side: "
        "repartition before for a bound of all.",
    )
    concurrency: int = Field(
        4,
        gt=0,
        le=256,
        passed=False,
        change="continues",
        description="How many requests a task has under way.",
    )
    cache: int = Field(
        0,
        ge=0,
        passed=False,
        description="How many answers a task remembers, so that the same request isn't made again; 0 for "
        "none. It is for `GET`.",
        examples=[10_000],
    )
    rejects: bool = Field(
        False,
        passed=False,
        description="Hand rows whose call fails to the output `rejected`; else they end the query. In a "
        "stream the targets of both take a group.",
    )
    unreachable: Literal["fail", "reject"] = Field(
        "fail",
        passed=False,
        description="With `rejects`: what becomes of a row when the service doesn't answer, or says that it "
        "can't now, at the last try too: `fail` ends the query, so that the micro-batch comes again later.",
    )

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.method in {"GET", "DELETE"} and self.body is not None:
            raise ValueError(f"a request of `method: {self.method}` has no `body`: remove one of the two")
        if self.cache and self.method != "GET":
            raise ValueError("`cache` is for `method: GET`: of others each request counts")
        if sum(given is not None for given in (self.token, self.user)) > 1:
            raise ValueError("give `token` or `user`, not both")
        if self.password is not None and self.user is None:
            raise ValueError("`password` is a user's: give that by `user`")
        if "api_key_header" in self.model_fields_set and self.api_key is None:
            raise ValueError("`api_key_header` has no effect without `api_key`")
        if "unreachable" in self.model_fields_set and not self.rejects:
            raise ValueError("`unreachable` is about rows that are rejected: it needs `rejects: true`")
        if not columns_of(self.schema):
            raise ValueError("`schema` needs at least one field")
        return self

    def calls(self) -> Calls:
        """How executors call the service; with logins in the clear."""
        headers = {"User-Agent": "gem-bundle", "Accept": "application/json", **self.headers}
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token.get_secret_value()}"
        if self.user is not None:
            password = "" if self.password is None else self.password.get_secret_value()
            login = base64.b64encode(f"{self.user}:{password}".encode()).decode()
            headers["Authorization"] = f"Basic {login}"
        if self.api_key is not None:
            headers[self.api_key_header] = self.api_key.get_secret_value()
        return Calls(
            method=self.method,
            headers=tuple(headers.items()),
            timeout=_seconds(self.timeout),
            retries=self.retries,
            backoff=_seconds(self.backoff),
            longest_wait=_seconds(self.longest_wait),
            per_second=self.per_second,
            concurrency=self.concurrency,
            cache=self.cache,
            rejects=self.rejects,
            rejects_unreachable=self.unreachable == "reject",
        )


def _seconds(duration: str) -> float:
    return int(duration.removesuffix("ms")) / 1000
