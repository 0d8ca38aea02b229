"""What executors do: one request for each row, tried again, held back and remembered as the options say."""

import http.client
import json
import re
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from gem_bundle import PassingError, UnreachableError

MOST_BYTES = 16 << 20
"""What an answer may be at most."""

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_LOGIN = frozenset({401, 403, 407})
_LONGEST_BACKOFF = 30.0
_SHOWN = 300


class Outcome(NamedTuple):
    """What became of a call: the text of an answer, or why there is none."""

    body: str | None = None
    name: str | None = None
    words: str | None = None


OUTCOME_TYPE = "struct<body: string, name: string, words: string>"


class _Passing(Exception):  # noqa: N818 (it says what another try may mend)
    """A call that may succeed a little later.

    Args:
        words: Why it didn't.
        after: Seconds after which the server wants to be asked again.
    """

    def __init__(self, words: str, after: float | None = None) -> None:
        super().__init__(words)
        self.words = words
        self.after = after


@dataclass(frozen=True)
class Calls:
    """How a service is called. It travels to executors, and holds nothing but values.

    Args:
        method: The method.
        headers: What is sent with each request, logins too.
        timeout: Seconds within which each step of an answer has to come.
        retries: How often a call is tried again.
        backoff: Seconds before the second try; they double with each.
        longest_wait: Seconds that a server may ask to be left alone before another try.
        per_second: How many requests a task begins in a second at most; None for no bound.
        concurrency: How many requests a task has under way.
        cache: How many answers a task remembers; 0 for none.
        rejects: Whether a row whose call fails is told of, and doesn't end the query.
        rejects_unreachable: Whether that is so of a service that doesn't answer, too.
    """

    method: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    timeout: float = 10.0
    retries: int = 3
    backoff: float = 0.5
    longest_wait: float = 60.0
    per_second: float | None = None
    concurrency: int = 4
    cache: int = 0
    rejects: bool = False
    rejects_unreachable: bool = False

    def all_of(self, asked: Iterable[list[tuple[str | None, str | None]]]) -> Iterator[list[Outcome]]:
        """The outcomes of the requests of a task, batch by batch, in their order.

        Args:
            asked: For each row of a batch the address and the body.

        Raises:
            UnreachableError: Where a call fails that mayn't; `PassingError` where that may pass.
        """
        pace = _Pace(self.per_second)
        known: OrderedDict[tuple[str | None, str | None], Outcome] = OrderedDict()
        with ThreadPoolExecutor(max_workers=self.concurrency) as pool:
            for batch in asked:
                waiting: dict[tuple[str | None, str | None], Future[Outcome]] = {}
                tries: list[Outcome | Future[Outcome]] = []
                for request in batch:
                    if self.cache and request in known:
                        known.move_to_end(request)
                        tries.append(known[request])
                    elif self.cache and request in waiting:
                        tries.append(waiting[request])
                    else:
                        waiting[request] = pool.submit(self.one, *request, pace.wait)
                        tries.append(waiting[request])
                try:
                    found = [one if isinstance(one, Outcome) else one.result() for one in tries]
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
                for request, outcome in zip(batch, found, strict=True):
                    if self.cache and outcome.name is None:
                        known[request] = outcome
                        if len(known) > self.cache:
                            known.popitem(last=False)
                yield found

    def one(self, url: str | None, body: str | None, pace: Callable[[], None] = lambda: None) -> Outcome:
        """The outcome of one request.

        Args:
            url: The address; None where a value that it is made of is null.
            body: What is sent.
            pace: Waits until the next request may begin.

        Raises:
            UnreachableError: Where it fails and mayn't; `PassingError` where that may pass.
        """
        if url is None:
            return self._refused("no_value", "a value that the address is made of is null")
        wait = self.backoff
        for attempt in range(self.retries + 1):
            pace()
            try:
                return self._asked(url, body)
            except _Passing as passing:
                longest = passing.after is not None and passing.after > self.longest_wait
                if attempt == self.retries or longest:
                    return self._unreached(url, passing.words, attempt + 1)
                time.sleep(wait if passing.after is None else max(wait, passing.after))
                wait = min(wait * 2, _LONGEST_BACKOFF)
        raise AssertionError("the last try returns or raises")

    def _asked(self, url: str, body: str | None) -> Outcome:
        data = None if body is None else body.encode()
        request = urllib.request.Request(  # noqa: S310 (http or https, which the options see to)
            url, data, dict(self.headers), method=self.method
        )
        try:
            with _opener().open(request, timeout=self.timeout) as answer:
                content = answer.read(MOST_BYTES + 1)
                if len(content) <= MOST_BYTES and answer.length:
                    raise _Passing("the connection ended in the middle of the answer")
                return self._read(content)
        except urllib.error.HTTPError as error:
            with error:
                return self._answered(error)
        except urllib.error.URLError as error:
            raise _Passing(self._why(error.reason)) from None
        except (OSError, http.client.HTTPException) as error:
            raise _Passing(self._why(error)) from None

    def _read(self, content: bytes) -> Outcome:
        if len(content) > MOST_BYTES:
            return self._refused("too_long", f"the answer is longer than {MOST_BYTES:,} bytes")
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return self._refused("not_json", "the answer is no text in UTF-8")
        if not text.strip():
            return Outcome()
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return self._refused("not_json", f"the answer isn't JSON: {self._shown(text)}")
        if not isinstance(found, dict):
            return self._refused("not_an_object", f"the answer is no object of JSON: {self._shown(text)}")
        return Outcome(text)

    def _answered(self, error: urllib.error.HTTPError) -> Outcome:
        """What an answer means that isn't one of success."""
        status = error.code
        try:
            said = self._shown(error.read(4 * _SHOWN).decode(errors="replace"))
        except (OSError, http.client.HTTPException):
            said = ""
        words = f"the service answers HTTP {status}{': ' + said if said else ''}"
        if status in _PASSING:
            raise _Passing(words, _seconds(error.headers.get("Retry-After")))
        if status in _LOGIN:
            # That is said of all rows: to reject them one by one would empty the stream.
            raise UnreachableError(
                f"the login is refused: {words}", "Correct the token, the key or the user."
            )
        return self._refused(f"http_{status}", words)

    def _refused(self, name: str, words: str) -> Outcome:
        if self.rejects:
            return Outcome(None, name, words)
        raise UnreachableError(
            words, "Reject such rows with `rejects: true`, or leave them out before with `filter`."
        )

    def _unreached(self, url: str, words: str, tries: int) -> Outcome:
        times = "once" if tries == 1 else f"{tries} times"
        if self.rejects and self.rejects_unreachable:
            return Outcome(None, "unreachable", f"{words}, asked {times}")
        who = self._shown(re.split(r"[?#]", url)[0])
        raise PassingError(f"`{who}` can't be called: {words}, asked {times}", "Try again in a while.")

    def _why(self, error: object) -> str:
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"its certificate isn't trusted: {error.verify_message}"
        if isinstance(error, TimeoutError):
            return f"no answer within {self.timeout:g} seconds"
        if isinstance(error, socket.gaierror):
            return "the name of its machine is not known"
        return self._shown(getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()

    def _shown(self, text: str) -> str:
        """A text in one short line, without what was sent to log in."""
        line = " ".join(text.split())
        for _, value in self.headers:
            for secret in (value, value.partition(" ")[2]):
                if len(secret) > 2:
                    line = line.replace(secret, "**********")
        return line[:_SHOWN]


class _Pace:
    """Lets so many requests begin in a second, one after the other."""

    def __init__(self, per_second: float | None) -> None:
        self._between = 0.0 if per_second is None else 1 / per_second
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Wait until the next may begin."""
        if not self._between:
            return
        with self._lock:
            now = time.monotonic()
            begins = max(now, self._next)
            self._next = begins + self._between
        time.sleep(begins - now)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Whoever is redirected to would get the login."""

    def redirect_request(self, *_: object) -> None:
        return None


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_NoRedirects())


def _seconds(text: str | None) -> float | None:
    """How long the header Retry-After asks to wait: it has seconds, or a moment."""
    if text is None:
        return None
    if re.fullmatch(r"\s*\d{1,9}\s*", text):
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
