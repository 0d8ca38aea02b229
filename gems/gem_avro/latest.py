"""The latest schema of a subject, as a schema that Spark takes."""

from gem_avro.parsing import SchemaTextError, whole
from gem_avro.registry import Registry
from gem_bundle import GemError
from gem_bundle.avro import AvroSchema, AvroSchemaError, avro_schema


def latest(client: Registry, subject: str) -> tuple[AvroSchema, int]:
    """The latest schema of a subject, and its id.

    Args:
        client: The registry.
        subject: The subject.

    Raises:
        GemError: GB522 when there is none that is of use, GB503 when the registry can't be asked.
    """
    found = client.latest(subject)
    if found is None:
        message = f"{client.told} has no subject `{subject}`"
        raise GemError("GB522", message, "Correct its name, or register a schema in it.", "subject")
    which = f"the latest schema of `{subject}`, with the id {found.id},"
    if found.kind != "AVRO":
        hint = "Name a subject with schemas of Avro."
        raise GemError("GB522", f"{which} is one of {found.kind} and not of Avro", hint, "subject")
    try:
        schema = avro_schema(whole(found.text, found.known))
    except (AvroSchemaError, SchemaTextError) as error:
        message = f"{which} is none that Spark takes: {error}"
        raise GemError("GB522", message, "Give a schema by `schema`.", "subject") from None
    if schema.record is None:
        message = f"{which} isn't that of a record, whose fields are columns"
        raise GemError("GB522", message, "Name the subject of a record.", "subject")
    return schema, found.id
