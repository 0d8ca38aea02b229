"""What executors do with messages whose schemas a registry has: each is put into the reader's schema."""

from dataclasses import dataclass, field

from gem_avro.options import HEADER_BYTES
from gem_avro.parsing import SchemaTextError, parsed
from gem_avro.registry import Registered, Registry
from gem_avro.resolution import ResolutionError, Resolved, UnreadableError, resolve
from gem_bundle import GemError

BODY_TYPE = "struct<message: binary, name: string, words: string>"
"""A message in the reader's schema, or the name of the reason for which it isn't, and words."""

Body = tuple[bytes | None, str | None, str | None]

# An id stands for one schema for good, so a process asks once for each; Spark uses its processes again.
_known: dict[tuple[Registry, str], dict[int, "Resolved | _Why"]] = {}


@dataclass(frozen=True)
class _Why:
    """Why no message of a schema can be read."""

    name: str
    words: str


@dataclass
class Reading:
    """Called with each message. It travels to executors.

    A registry that can't be asked fails the micro-batch: that says nothing of the message.

    Args:
        registry: The registry.
        reader: The schema to put messages into.
        fail: Whether a message that can't be fails the micro-batch too.
    """

    registry: Registry
    reader: str
    fail: bool = False
    # What isn't there may be there a little later: it is known for one task only.
    _missing: dict[int, _Why] = field(default_factory=dict, repr=False)

    def __call__(self, message: bytes | None) -> Body | None:
        """The message in the reader's schema, or why it isn't; None where there is none.

        Raises:
            UnreachableError: When the registry can't be asked.
            GemError: When a message can't be read, and that fails.
        """
        if message is None:
            return None
        data = bytes(message)
        if len(data) < HEADER_BYTES or data[0]:
            words = "the message doesn't begin with a zero byte and the id of its schema"
            return self._unread("no_header", words)
        number = int.from_bytes(data[1:HEADER_BYTES], "big")
        found = self._schema(number)
        if isinstance(found, _Why):
            return self._unread(found.name, found.words)
        try:
            return found.message(data[HEADER_BYTES:]), None, None
        except UnreadableError as error:
            return self._unread("not_avro", f"the message isn't a record of its schema: {error}")
        except ResolutionError as error:
            words = f"a message of the schema {number} can't become one of the reader's: {error}"
            return self._unread("unresolved_schema", words)

    def _unread(self, name: str, words: str) -> Body:
        if self.fail:
            hint = (
                "`mode: PERMISSIVE` makes its fields null, and `rejects` hands it to the output `rejected`."
            )
            raise GemError("GB508", words, hint)
        return None, name, words

    def _schema(self, schema_id: int) -> Resolved | _Why:
        known = _known.setdefault((self.registry, self.reader), {})
        if schema_id not in known and schema_id not in self._missing:
            found = self.registry.schema(schema_id)
            if found is None:
                words = (
                    f"the message was written with the schema {schema_id}, which the registry doesn't have"
                )
                self._missing[schema_id] = _Why("unknown_schema", words)
            else:
                known[schema_id] = self._resolved(schema_id, found)
        return known[schema_id] if schema_id in known else self._missing[schema_id]

    def _resolved(self, schema_id: int, found: Registered) -> Resolved | _Why:
        written = f"the message was written with the schema {schema_id}, which"
        if found.kind != "AVRO":
            return _Why("unknown_schema", f"{written} is one of {found.kind} and not of Avro")
        try:
            return resolve(parsed(found.text, found.known), parsed(self.reader))
        except SchemaTextError as error:
            return _Why("unresolved_schema", f"{written} can't be read: {error}")
