"""Schema registries by their REST interface, as Confluent documents it, for the driver and for executors."""

import base64
import http.client
import json
import re
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field, replace
from typing import Any

from gem_bundle import PassingError, UnreachableError
from gem_bundle.diagnostics import listed_names

_KIND = "application/vnd.schemaregistry.v1+json"
_UNKNOWN_SUBJECT, _UNKNOWN_VERSION, _UNKNOWN_SCHEMA = 40401, 40402, 40403
_INCOMPATIBLE, _INVALID = 409, 422
_TRIES = 3
_BETWEEN_TRIES = 0.3
_MOST_BYTES = 16 << 20
_AGAIN = "Start it, correct the address, or open the network between this machine and it."


@dataclass(frozen=True, slots=True)
class Registered:
    """A schema as a registry has it.

    Args:
        text: The schema.
        kind: Its kind: ``AVRO``, ``JSON``, ``PROTOBUF``.
        id: Its id; 0 where the answer doesn't have it.
        version: Its version in the subject; 0 where the answer doesn't have it.
        known: The schemas whose types it names, each after those that it names itself.
    """

    text: str
    kind: str = "AVRO"
    id: int = 0
    version: int = 0
    known: tuple[str, ...] = ()


class Refused(Exception):  # noqa: N818 (it carries an answer to who has asked)
    """The registry answers with an error of its own.

    Args:
        code: The error's code.
        words: What it says.
    """

    def __init__(self, code: int, words: str) -> None:
        super().__init__(code, words)
        self.code = code
        self.words = words


@dataclass(frozen=True)
class Registry:
    """A schema registry.

    Args:
        urls: Its addresses: where one can't be reached, the next is asked.
        authorization: What is sent to log in; None for nothing.
        authority: Certificates, in PEM, of those who may have signed the registry's; None for the system's.
        timeout: How long it may take to answer, in seconds.
        tries: How often it is asked before that fails which may pass.
    """

    urls: tuple[str, ...]
    authorization: str | None = field(default=None, repr=False)
    authority: str | None = field(default=None, repr=False)
    timeout: float = 5.0
    tries: int = _TRIES

    @property
    def told(self) -> str:
        """It, in a sentence."""
        return "the schema registry at " + listed_names(self.urls)

    def at_once(self, seconds: float) -> "Registry":
        """The same one, for those who can't wait.

        Args:
            seconds: How long it may take at most.
        """
        return replace(self, timeout=min(self.timeout, seconds), tries=1)

    def schema(self, schema_id: int) -> Registered | None:
        """The schema of an id; None where the registry doesn't have it.

        Raises:
            UnreachableError: When the registry can't be asked; `PassingError` where that may pass.
        """
        try:
            return self._registered(self.ask(f"/schemas/ids/{schema_id}"))
        except Refused as refused:
            if refused.code == _UNKNOWN_SCHEMA:
                return None
            raise self._wrong(refused) from None

    def latest(self, subject: str) -> Registered | None:
        """The latest schema of a subject; None where the registry has no such subject.

        Raises:
            UnreachableError: When the registry can't be asked; `PassingError` where that may pass.
        """
        return self.version(subject, "latest")

    def version(self, subject: str, version: int | str) -> Registered | None:
        """A version of a subject; None where the registry doesn't have it.

        Raises:
            UnreachableError: When the registry can't be asked; `PassingError` where that may pass.
        """
        try:
            return self._registered(self.ask(f"/subjects/{_quoted(subject)}/versions/{version}"))
        except Refused as refused:
            if refused.code in {_UNKNOWN_SUBJECT, _UNKNOWN_VERSION}:
                return None
            raise self._wrong(refused) from None

    def find(self, subject: str, text: str) -> int | None:
        """The id that a schema has in a subject; None where it isn't registered there.

        Raises:
            UnreachableError: When the registry can't be asked; `PassingError` where that may pass.
        """
        try:
            return self._id(self.ask(f"/subjects/{_quoted(subject)}", {"schema": text}))
        except Refused as refused:
            if refused.code in {_UNKNOWN_SUBJECT, _UNKNOWN_SCHEMA}:
                return None
            raise self._wrong(refused) from None

    def fits(self, subject: str, text: str) -> str | None:
        """Why a schema can't become the next version of a subject; None where it can.

        Raises:
            UnreachableError: When the registry can't be asked; `PassingError` where that may pass.
        """
        path = f"/compatibility/subjects/{_quoted(subject)}/versions/latest?verbose=true"
        try:
            answer = self.ask(path, {"schema": text})
        except Refused as refused:
            if refused.code in {_UNKNOWN_SUBJECT, _UNKNOWN_VERSION}:
                return None
            if refused.code == _INVALID or refused.code // 100 == _INVALID:
                return refused.words
            raise self._wrong(refused) from None
        if answer.get("is_compatible") is not False:
            return None
        return "; ".join(map(str, answer.get("messages") or ())) or "it isn't compatible with the others"

    def register(self, subject: str, text: str) -> int:
        """Register a schema in a subject; one that is there keeps its id.

        Returns:
            Its id.

        Raises:
            Refused: When the registry doesn't take it.
            UnreachableError: When the registry can't be asked; `PassingError` where that may pass.
        """
        try:
            return self._id(self.ask(f"/subjects/{_quoted(subject)}/versions", {"schema": text}))
        except Refused as refused:
            if refused.code // 100 in {_INCOMPATIBLE, _INVALID} or refused.code in {_INCOMPATIBLE, _INVALID}:
                raise
            raise self._wrong(refused) from None

    def ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """What the registry answers.

        Args:
            path: What is asked for.
            body: What is sent; None for nothing.

        Raises:
            Refused: When it answers with an error of its own.
            UnreachableError: When it can't be asked; `PassingError` where that may pass.
        """
        last: PassingError | None = None
        for attempt in range(self.tries):
            if attempt:
                time.sleep(_BETWEEN_TRIES * attempt)
            for url in self.urls:
                try:
                    return self._asked(url, path, body)
                except PassingError as error:
                    last = error
        assert last is not None, "there is an address, and it is asked at least once"
        raise last

    def _asked(self, url: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        headers = {"Accept": f"{_KIND}, application/json", "User-Agent": "gem-bundle"}
        data = None
        if body is not None:
            headers["Content-Type"] = _KIND
            data = json.dumps(body).encode()
        if self.authorization is not None:
            headers["Authorization"] = self.authorization
        asked = urllib.request.Request(url.rstrip("/") + path, data, headers)  # noqa: S310 (http or https)
        who = f"the schema registry at `{url}`"
        try:
            with self._opener(secure=url.startswith("https")).open(asked, timeout=self.timeout) as answer:
                return _read(answer.read(_MOST_BYTES), who)
        except urllib.error.HTTPError as error:
            with error:
                raise self._answered(error, who) from None
        except urllib.error.URLError as error:
            raise _unreached(error.reason, who, self.timeout) from None
        except (OSError, http.client.HTTPException) as error:
            raise _unreached(error, who, self.timeout) from None

    def _opener(self, *, secure: bool) -> urllib.request.OpenerDirector:
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if secure:
            context = ssl.create_default_context(cadata=self.authority)
            handlers.append(urllib.request.HTTPSHandler(context=context))
        return urllib.request.build_opener(*handlers)

    def _answered(self, error: urllib.error.HTTPError, who: str) -> Exception:
        """What an answer means that is an error."""
        status = error.code
        try:
            told = json.loads(error.read(_MOST_BYTES))
            code, words = int(told["error_code"]), str(told.get("message", ""))
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
            code, words = status, ""
        said = f": {self._hidden(words)}" if words else ""
        if status in {401, 403}:
            message = f"{who} refuses the login (HTTP {status}){said}"
            return UnreachableError(message, "Correct `registry_user` and `registry_password`, or the token.")
        if status >= 500 or status in {408, 425, 429}:
            return PassingError(f"{who} can't answer now (HTTP {status}){said}", "Try again in a while.")
        # Of a path that it doesn't know, a registry says no more than HTTP does.
        if code != status or status in {_INCOMPATIBLE, _INVALID}:
            return Refused(code, self._hidden(words))
        message = f"{who} answers HTTP {status}, and not as a schema registry does"
        return UnreachableError(message, "Is the address right, with the path in front of `/subjects`?")

    def _hidden(self, words: str) -> str:
        """What it says, in one line and without what was sent to log in."""
        secret = (self.authorization or "").partition(" ")[2]
        words = " ".join(words.split())[:500]
        return words.replace(secret, "**********") if secret else words

    def _wrong(self, refused: Refused) -> UnreachableError:
        message = f"{self.told} answers with the error {refused.code}: {refused.words}"
        return UnreachableError(message, "Its own log tells more.")

    def _registered(self, answer: dict[str, Any]) -> Registered:
        known: dict[tuple[str, int], str] = {}
        self._add_named(answer, known)
        try:
            return Registered(
                str(answer["schema"]),
                str(answer.get("schemaType") or "AVRO"),
                int(answer.get("id") or 0),
                int(answer.get("version") or 0),
                tuple(known.values()),
            )
        except (KeyError, TypeError, ValueError):
            raise UnreachableError(f"{self.told} answers without a schema", _AGAIN) from None

    def _add_named(self, answer: dict[str, Any], known: dict[tuple[str, int], str]) -> None:
        """Add the schemas whose types a schema names, each behind those that it names itself."""
        for each in answer.get("references") or ():
            key = (str(each["subject"]), int(each["version"]))
            if key not in known:
                found = self.ask(f"/subjects/{_quoted(key[0])}/versions/{key[1]}")
                self._add_named(found, known)
                known.setdefault(key, str(found["schema"]))

    def _id(self, answer: dict[str, Any]) -> int:
        found = answer.get("id")
        if not isinstance(found, int) or isinstance(found, bool):
            raise UnreachableError(f"{self.told} answers without an id", _AGAIN)
        return found


def authorization(user: str | None, password: str | None, token: str | None) -> str | None:
    """What is sent to log in.

    Args:
        user: A user.
        password: The user's password.
        token: A token, in the place of these.
    """
    if token is not None:
        return f"Bearer {token}"
    if user is None:
        return None
    return "Basic " + base64.b64encode(f"{user}:{password or ''}".encode()).decode()


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Whoever is redirected to would get the password."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _quoted(subject: str) -> str:
    return urllib.parse.quote(subject, safe="")


def _read(content: bytes, who: str) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        message = f"{who} doesn't answer as a schema registry does"
        raise UnreachableError(message, "Is the address right, with the path in front of `/subjects`?")
    return found


def _unreached(error: object, who: str, timeout: float) -> UnreachableError:
    if isinstance(error, ssl.SSLCertVerificationError):
        message = f"the certificate of {who} isn't trusted: {error.verify_message}"
        return UnreachableError(message, "Name the authority that signed it in `registry_ca_file`.")
    if isinstance(error, socket.gaierror):
        why = "the name is not known"
    elif isinstance(error, TimeoutError):
        why = f"no answer within {timeout:g} seconds"
    else:
        words = getattr(error, "strerror", None) or str(error) or type(error).__name__
        why = re.sub(r"\s+", " ", words)[:300].lower()
    return PassingError(f"{who} can't be reached: {why}", _AGAIN)
