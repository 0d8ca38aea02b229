"""What is known of a gem, collected from its class."""

from __future__ import annotations

import inspect
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast, get_args

from pydantic import BaseModel, SecretStr, ValidationError

from gem_bundle.describe.words import models_in, type_in_words
from gem_bundle.options import Options, metadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

    from gem_bundle.gem import Gem, Source, Target, Transform
    from gem_bundle.plugins import GemEntry, Origin
    from gem_bundle.semantics import Kind


@dataclass(frozen=True, slots=True)
class OptionDescription:
    """One option of a gem.

    Args:
        name: Its name; an option inside another one has a dotted name.
        type: What it takes, in words.
        required: Whether it must be given.
        default: Its default as JSON takes it; None for an option that is off by default.
        description: What it is for.
        spark: Spark's spelling, where Spark has the option too.
        secret: Whether its value is never printed.
        advanced: Whether it is shown after the others.
        since: The Spark version that brought it, where that is later than 4.0.
        examples: Values worth showing.
    """

    name: str
    type: str
    required: bool
    default: Any
    description: str
    spark: str | None = None
    secret: bool = False
    advanced: bool = False
    since: str | None = None
    examples: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class GemDescription:
    """All that a gem says about itself.

    Args:
        kind: ``source``, ``transform`` or ``target``.
        name: Its name.
        summary: What it does, in a sentence.
        details: What else its docstring tells its user, as paragraphs.
        origin: The plugin and the distribution that it comes from.
        options: Its options, the advanced ones last.
        semantics: What it declares, by the names of `SourceSemantics`, `TargetSemantics` or `Transform`.
        jars: The Maven coordinates that the example needs.
        example: Options that make a working node.
    """

    kind: Kind
    name: str
    summary: str
    details: tuple[str, ...]
    origin: Origin
    options: tuple[OptionDescription, ...]
    semantics: dict[str, Any]
    jars: tuple[str, ...]
    example: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """The description as JSON takes it."""
        return asdict(self)


def describe_gem(entry: GemEntry) -> GemDescription:
    """Describe a gem.

    Raises:
        PluginError: When its class can't be loaded.
    """
    gem = entry.load()
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(gem.__doc__ or ""))
    return GemDescription(
        kind=entry.kind,
        name=entry.name,
        summary=gem.summary(),
        details=tuple(" ".join(text.split()).replace("``", "`") for text in paragraphs[1:]),
        origin=entry.origin,
        options=tuple(_options(gem)),
        semantics=_semantics(gem),
        jars=_jars(gem),
        example=dict(gem.example),
    )


def _options(gem: type[Gem]) -> list[OptionDescription]:
    found = list(describe_fields(gem.options_type, spark=gem.kind != "transform"))
    return sorted(found, key=lambda option: option.advanced)


def describe_fields(
    model: type[BaseModel],
    prefix: str = "",
    *,
    spark: bool = False,
    advanced: bool = False,
    within: tuple[type[BaseModel], ...] = (),
) -> Iterator[OptionDescription]:
    """The options of a model, those inside an option right behind it.

    Args:
        model: A gem's options, or what any other mapping of a pipeline file takes.
        prefix: What stands before their names.
        spark: Whether Spark has options of these names too.
        advanced: Whether all of them are.
        within: The models that this one is an option of; one that is in itself is described once.
    """
    around = (*within, model)
    for name, info in model.model_fields.items():
        kept = metadata(info)
        spelling = None
        if spark and kept.get("passed", True) and name != "spark_options" and issubclass(model, Options):
            spelling = model.spark_name(name)
        secret = _has(info.annotation, SecretStr)
        behind = advanced or bool(kept.get("advanced"))
        yield OptionDescription(
            name=prefix + name,
            type=type_in_words(info.annotation, info.metadata),
            required=info.is_required(),
            default=None if secret or info.is_required() else _default(info),
            description=info.description or "",
            spark=spelling if spelling != name else None,
            secret=secret,
            advanced=behind,
            since=kept.get("since"),
            examples=tuple(info.examples or ()),
        )
        for inner in models_in(info.annotation):
            if not any(issubclass(outer, inner) for outer in around):
                yield from describe_fields(inner, f"{prefix}{name}.", advanced=behind, within=around)


def _default(info: FieldInfo) -> Any:
    from pydantic_core import to_jsonable_python

    value = info.get_default(call_default_factory=True, validated_data={})
    return to_jsonable_python(value, fallback=str)


def _semantics(gem: type[Gem]) -> dict[str, Any]:
    if gem.kind == "transform":
        transform = cast("type[Transform]", gem)
        least, most = transform.inputs
        return {"least_inputs": least, "most_inputs": most, "can_reject": transform.can_reject()}
    declared = asdict(cast("type[Source] | type[Target]", gem).semantics)
    declared["can_reject"] = cast("type[Source] | type[Target]", gem).can_reject()
    return {
        key: [word for word in _ORDER if word in value] if isinstance(value, frozenset) else value
        for key, value in declared.items()
    }


_ORDER = (
    *("default", "available_now", "processing_time", "once", "continuous", "real_time"),
    *("append", "update", "complete"),
    *("records", "files", "versions", "time"),
)


def _jars(gem: type[Gem]) -> tuple[str, ...]:
    """The coordinates for the example; a gem whose example is wrong fails its own tests, not this."""
    try:
        options = gem.options_type.model_validate(dict(gem.example), context={"base_dir": "."})
    except ValidationError:
        return ()
    return tuple(gem(options).jars())


def _has(annotation: Any, wanted: type) -> bool:
    return annotation is wanted or any(_has(argument, wanted) for argument in get_args(annotation))
