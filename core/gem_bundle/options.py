"""How a gem declares its options: once, as a pydantic model.

From the declaration come validation, `gem-bundle describe`, the JSON Schema for editors, the reference
page, and the list of secrets that must never be printed. Names are snake_case; Spark's own spelling
(``maxOffsetsPerTrigger``, ``kafka.bootstrap.servers``) is accepted in any case, so that an option can be
pasted from Spark's guide.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, SecretStr
from pydantic import Field as _field  # noqa: N813 (pydantic's is a function too)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic.fields import FieldInfo

_REQUIRED: Any = ...

Effect = Literal["continues", "from_now_on", "skipped", "again", "mixed", "refused"]
"""What an edit does to a query that goes on from its checkpoint, from harmless to fatal.

``continues``: no row is different for it. ``from_now_on``: rows that come from now on go by it, what was
written stays. ``skipped``: rows are never read. ``again``: rows that were read are read once more.
``mixed``: what the query keeps was made by the old rule and gets into new results, or what was written
can't be read any more. ``refused``: Spark doesn't go on.
"""


def Field(  # noqa: N802 (it stands where pydantic's Field would)
    default: Any = _REQUIRED,
    *,
    description: str,
    spark: str | None = None,
    passed: bool = True,
    examples: list[Any] | None = None,
    advanced: bool = False,
    since: str | None = None,
    change: "Effect | None" = None,
    place: bool = False,
    **constraints: Any,
) -> Any:
    """Declare one option of a gem.

    Args:
        default: Its default; leave it out for a required option.
        description: One sentence to the user of the option. Units belong here.
        spark: Spark's name of the option where it isn't the camelCase of the field's name.
        passed: Whether `Options.to_spark` hands it to Spark; False for options that are the gem's own.
        examples: Values worth showing.
        advanced: Shown after the others.
        since: The Spark version that brought it, where that is later than 4.0.
        change: What another value does to a query that goes on from its checkpoint, as `Effect` has it:
            for `gem-bundle plan`. Where one word isn't enough, `Gem.change` decides.
        place: Whether it says, alone or with others, which place a source reads or a target writes to, so
            that `gem-bundle plan` tells of another one. What `places` names is known to.
        constraints: What pydantic's ``Field`` takes (``gt``, ``min_length``, ``pattern`` …).
    """
    extra: dict[str, Any] = {
        "spark": spark,
        "passed": passed,
        "advanced": advanced,
        "since": since,
        "change": change,
        "place": place,
    }
    kept = {key: value for key, value in extra.items() if value not in (None, False)}
    kept["passed"] = passed
    return _field(
        default,
        description=description,
        examples=examples,
        json_schema_extra={"gem_bundle": kept},
        **constraints,
    )


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


class Options(BaseModel):
    """The options of a gem. Derive from it and declare each option with `Field`.

    Unknown options are refused. Instances are immutable.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True)

    default_change: "ClassVar[Effect | None]" = None
    """What another value does of an option whose `Field` says nothing of its `change`."""

    _spellings: ClassVar[dict[str, str] | None] = None

    @classmethod
    def spark_name(cls, name: str) -> str:
        """Spark's name of an option: declared, or the camelCase of the field's name."""
        declared = metadata(cls.model_fields[name]).get("spark")
        return str(declared) if declared else _camel(name)

    @classmethod
    def canonical(cls, key: str) -> str | None:
        """The field a key of the pipeline file means, in either spelling, or None."""
        if "_spellings" not in cls.__dict__ or cls._spellings is None:
            spellings: dict[str, str] = {}
            for name in cls.model_fields:
                spellings[cls.spark_name(name).lower()] = name
                spellings[_camel(name).lower()] = name
            cls._spellings = spellings
        if key in cls.model_fields:
            return key
        return cls._spellings.get(key.lower())

    @classmethod
    def secret_names(cls) -> tuple[str, ...]:
        """The options whose values must never be printed."""
        return tuple(n for n, f in cls.model_fields.items() if is_secret(f.annotation))

    def to_spark(self) -> dict[str, str]:
        """The options that were given, as Spark's readers and writers take them.

        Only options that the pipeline sets are passed, so Spark's own defaults stay in force. Raw
        ``spark_options`` come last and win. Secrets are in it in the clear: never print it.
        """
        found: dict[str, str] = {}
        for name, info in type(self).model_fields.items():
            if name == "spark_options" or not metadata(info).get("passed", True):
                continue
            value = getattr(self, name)
            if name in self.model_fields_set and value is not None:
                found[self.spark_name(name)] = _as_text(value)
        raw: Mapping[str, object] = getattr(self, "spark_options", None) or {}
        found.update({key: _as_text(value) for key, value in raw.items()})
        return found


class NoOptions(Options):
    """The options of a gem that has none."""


def metadata(info: "FieldInfo") -> "Mapping[str, Any]":
    """What `Field` keeps beside pydantic's own: ``spark``, ``passed``, ``advanced`` and so on."""
    extra = info.json_schema_extra
    if isinstance(extra, dict):
        kept = extra.get("gem_bundle")
        if isinstance(kept, dict):
            return kept
    return {}


def is_secret(annotation: Any) -> bool:
    """Whether a field's values are secrets.

    Args:
        annotation: Its annotation as pydantic keeps it.
    """
    if annotation is SecretStr:
        return True
    return any(is_secret(argument) for argument in getattr(annotation, "__args__", ()))


def _as_text(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(_as_text(item) for item in value)
    if isinstance(value, dict):
        import json

        return json.dumps(value)
    return str(value)
