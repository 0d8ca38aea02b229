"""A collector as a client sees it: one POST, its answer, and what the answer means.

Python's own http.client does it, so that executors need no package beside this one. Splunk's manual has the
answers: *Format events for HTTP Event Collector* and *HTTP Event Collector REST API endpoints*.
"""

from __future__ import annotations

import gzip
import json
import re
import ssl
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from time import time
from typing import Any, Literal
from urllib.parse import urlsplit
from uuid import uuid4

FAILURES = (OSError, HTTPException)
"""What a POST raises whose outcome isn't known: nobody answered, or not to the end."""

Outcome = Literal["taken", "again", "refused"]

_NO_DATA = 5
_NO_CHANNEL = 10
_ACKNOWLEDGEMENT_IS_OFF = 14
_OF_THE_TOKEN = frozenset({_NO_CHANNEL, 11, _ACKNOWLEDGEMENT_IS_OFF})  # 11: the channel is none
_LONGEST_ANSWER = 1 << 20
_SHOWN = 200


@dataclass(frozen=True)
class Address:
    """Where a collector is and how it is entered. It goes to executors, so it pickles.

    Args:
        url: With the path that events go to.
        token: In the clear; it is in no text that this makes.
        timeout: Seconds for a connection and for each part of an answer.
        verify: Whether its certificate must be trusted.
        certificates: Those that are trusted in place of the system's, as PEM.
        compressed: Whether to send with gzip.
        acknowledged: Whether to ask for indexer acknowledgement.
    """

    url: str
    token: str = field(repr=False)
    timeout: float = 30.0
    verify: bool = True
    certificates: str | None = field(default=None, repr=False)
    compressed: bool = False
    acknowledged: bool = False


@dataclass(frozen=True)
class Answer:
    """What a collector answers: the status, the body, and how long it asks to be left alone."""

    status: int
    body: bytes
    retry_after: float | None = None
    location: str = ""

    @property
    def said(self) -> dict[str, Any]:
        """The body's JSON; empty when it is none, as a proxy's page isn't."""
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def code(self) -> int | None:
        """The collector's own code: 0 is fine."""
        found = self.said.get("code")
        return found if isinstance(found, int) else None

    @property
    def outcome(self) -> Outcome:
        """Whether the events were taken, may be sent again, or will never be taken.

        An answer that isn't a collector's own, such as the page of a proxy, is no proof that it has the
        events, whatever its status.
        """
        if 200 <= self.status < 300:
            return "taken" if self.code == 0 else "again"
        return "again" if self.status in (408, 429) or self.status >= 500 else "refused"

    @property
    def is_about_events(self) -> bool:
        """Whether it refuses what was sent, and would take other events: not the token, say, or the path."""
        if self.code in _OF_THE_TOKEN:
            return False
        return self.status in (400, 413)

    @property
    def refused_event(self) -> int | None:
        """The position of the event that it refuses, where it says one."""
        found = self.said.get("invalid-event-number")
        return found if type(found) is int else None

    @property
    def reason(self) -> str:
        """What it says, in one line."""
        text = str(self.said.get("text") or "") or self.body[:_SHOWN].decode(errors="replace")
        text = "".join(c if c.isprintable() else " " for c in text)[:_SHOWN].strip()
        number = f"{self.status}, code {self.code}" if self.code is not None else str(self.status)
        return f"{number}: {text}" if text else number

    @property
    def hint(self) -> str:
        """What to do about a refusal."""
        if self.location:
            return f"It points to {self.location}: write that address, if it is the collector's."
        if self.code == _NO_CHANNEL:
            return "The token has indexer acknowledgement switched on: set `acknowledge: true`."
        if self.code == _ACKNOWLEDGEMENT_IS_OFF:
            return "Switch indexer acknowledgement on for the token, or remove `acknowledge`."
        return {
            401: "Correct `token`.",
            403: "Correct `token`, or switch it on at the collector.",
            404: "Correct the path of `url`: Splunk's is `/services/collector/event`.",
            413: "Set `max_payload` to what the collector takes at once.",
        }.get(self.status, "")


class Collector:
    """A connection to a collector: kept between POSTs, and made anew after a failure.

    Args:
        address: Where it is.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._parts = urlsplit(address.url)
        self._connection: HTTPConnection | None = None
        self._channel = str(uuid4()) if address.acknowledged else ""

    @property
    def wants_acknowledgements(self) -> bool:
        """Whether it is asked to tell when events are written."""
        return self._address.acknowledged

    def post(self, events: bytes) -> Answer:
        """Send some events once.

        Raises:
            OSError: When nobody answers; like `HTTPException`, it is one of `FAILURES`.
            HTTPException: When the answer isn't HTTP, or isn't whole.
        """
        headers = {"Content-Type": "application/json; charset=utf-8"}
        if self._address.compressed and events:
            events = gzip.compress(events, compresslevel=5, mtime=0)
            headers["Content-Encoding"] = "gzip"
        return self._request(self._parts.path, events, headers)

    def acknowledged(self, numbers: list[int]) -> set[int]:
        """Which of the POSTs of this connection, by their ``ackId``, the indexers have written.

        Raises:
            OSError: As `post` does.
            HTTPException: As `post` does.
        """
        path = f"{self._parts.path.removesuffix('/event')}/ack?channel={self._channel}"
        answer = self._request(path, json.dumps({"acks": numbers}).encode(), {})
        if answer.status != 200:
            raise HTTPException(answer.reason)
        found = answer.said.get("acks")
        return {number for number in numbers if isinstance(found, dict) and found.get(str(number)) is True}

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _request(self, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        headers["Authorization"] = f"Splunk {self._address.token}"
        if self._channel:
            headers["X-Splunk-Request-Channel"] = self._channel
        connection = self._connection = self._connection or self._connect()
        try:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            content = response.read(_LONGEST_ANSWER)
            if not response.isclosed():  # longer than any collector's: the rest would be the next answer
                self.close()
        except BaseException:
            # Whatever is still on its way must not be taken for the answer to the next POST.
            self.close()
            raise
        found = response.headers
        return Answer(
            response.status,
            content.replace(self._address.token.encode(), b"**********"),
            _waiting(found.get("Retry-After")),
            found.get("Location") or "",
        )

    def _connect(self) -> HTTPConnection:
        host, port, timeout = self._parts.hostname or "", self._parts.port, self._address.timeout
        if self._parts.scheme == "http":
            return HTTPConnection(host, port, timeout=timeout)
        context = ssl.create_default_context(cadata=self._address.certificates)
        if not self._address.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return HTTPSConnection(host, port, timeout=timeout, context=context)


def said(error: BaseException) -> str:
    """What an error says, in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def is_no_data(answer: Answer) -> bool:
    """Whether a collector that was sent nothing says so, having taken the token."""
    return answer.status == 400 and answer.code == _NO_DATA


def _waiting(retry_after: str | None) -> float | None:
    """The seconds that a ``Retry-After`` asks for: it has them, or a date."""
    if retry_after is None:
        return None
    if re.fullmatch(r"\s*\d{1,9}\s*", retry_after):
        return float(retry_after)
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time())
    except (ValueError, OverflowError):
        return None
