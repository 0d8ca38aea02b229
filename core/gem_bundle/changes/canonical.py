"""From a checked pipeline to what the record of one target keeps of it: canonical, and without a secret."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, cast, get_args, get_origin

from gem_bundle.changes.functions import function_hash
from gem_bundle.changes.lineages import lineage_of
from gem_bundle.changes.record import InputRecord, NodeRecord, OperatorRecord, Record, VersionRecord
from gem_bundle.changes.secretless import Cleaner, without_secrets
from gem_bundle.changes.settings import FROZEN, is_of_rows
from gem_bundle.changes.withheld import ENVIRONMENT, SECRET, with_text, withheld
from gem_bundle.changes.zone import TIME_ZONE, effective_zone
from gem_bundle.check.stages.inference import inputs_of
from gem_bundle.check.stages.versions import installed_spark
from gem_bundle.check.streaming.processors import processor_states
from gem_bundle.operators import Ancestry, EventTime, Operator, StatefulOperator
from gem_bundle.pipeline.document import Unknown
from gem_bundle.pipeline.plan import paths_behind, reader_name
from gem_bundle.pipeline.secrets import (
    HIDDEN,
    FromEnvironment,
    Secret,
    UnresolvedSecret,
    found_values,
    hidden,
    written,
)
from gem_bundle.settings import load_settings
from gem_bundle.types import FunctionReference, is_remote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from gem_bundle.gem import Gem, Source, Target, Transform
    from gem_bundle.options import Options
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan


def version_of(
    plan: Plan,
    target: str,
    *,
    first_batch: int = 0,
    environment: Mapping[str, str] | None = None,
) -> VersionRecord:
    """What a record keeps of the part of a pipeline that leads to a target.

    It is the same with secrets looked up and without.

    Args:
        plan: The checked pipeline.
        target: The id of the target.
        first_batch: The first micro-batch that it will run.
        environment: Environment variables, for the project's settings; None is the process's.
    """
    plan, whole = without_secrets(plan)
    definition = plan.definition
    own, spark = _versions()
    readers: dict[str, list[str]] = {}
    for path in paths_behind(plan, target):
        if plan.node(path[0]).kind == "source":
            readers.setdefault(path[0], []).append(reader_name(plan, path))
    clean = Cleaner(definition, () if whole else found_values())
    nodes = tuple(
        _node(plan, plan.node(name), tuple(sorted(readers.get(name, ()))), clean)
        for name in plan.upstream([target])
    )
    said = _settings(plan, target, clean, environment)
    # What lies elsewhere is run elsewhere, and may be looked at from here.
    elsewhere = TIME_ZONE in said or is_remote(definition.checkpoint(target))
    return VersionRecord(
        first_batch=first_batch,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        pipeline=definition.name,
        pipeline_version=definition.version,
        gem_bundle=own,
        spark=spark,
        python=platform.python_version(),
        folder=str(definition.folder),
        checkpoint=clean.place(definition.checkpoint(target)),
        nodes=nodes,
        operators=_operators(plan, target, clean, definition.module_folder),
        settings={key: value for key, value in said.items() if key in FROZEN},
        deciding={key: value for key, value in said.items() if is_of_rows(key, value)},
        zone="" if elsewhere else effective_zone(said),
    )


def with_defaults(plan: Plan, record: Record) -> Record:
    """What ran, with the options that its gems didn't have yet: what they do by default is what they did.

    Args:
        plan: The checked pipeline, for the gems as they are now.
        record: What ran.
    """
    now = {node.identity: node for node in plan.definition.nodes.values()}

    def completed(node: NodeRecord) -> NodeRecord:
        same = now.get(node.identity)
        if same is None or (same.kind, same.gem) != (node.kind, node.gem):
            return node
        options = _completed(type(plan.gems[same.id].options), node.options)
        return node if options is node.options else replace(node, options=options)

    versions = (replace(one, nodes=tuple(map(completed, one.nodes))) for one in record.versions)
    return replace(record, versions=tuple(versions))


def _completed(kind: type[Options], options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of a node as a record has them, in their order now, and the defaults of those it lacks."""
    if kind.model_fields.keys() <= options.keys():
        return options
    defaults = kind.model_construct().model_dump(mode="json", warnings=False)
    names = dict.fromkeys([*kind.model_fields, *options])
    return {n: options[n] if n in options else defaults[n] for n in names if n in options or n in defaults}


@cache
def _versions() -> tuple[str, str]:
    """Those of gem-bundle and of Spark: each is read out of a file of its distribution."""
    from importlib.metadata import version

    return version("gem-bundle"), installed_spark() or ""


def _node(plan: Plan, node: Node, readers: tuple[str, ...], clean: Cleaner) -> NodeRecord:
    gem = plan.gems[node.id]
    facts = inputs_of(node, plan.facts)[0] if node.kind == "target" else plan.facts[node.id]
    columns = facts.columns
    distribution, version = plan.origins.get(node.id, ("", ""))
    places: Mapping[str, Any] = {}
    if node.kind != "transform":
        places = cast("Source | Target", gem).places()
    return NodeRecord(
        node.id,
        node.kind,
        node.gem,
        distribution,
        version,
        options=_options(node, gem, clean),
        inputs=tuple(InputRecord(edge.node, edge.output or "", edge.name) for edge in node.inputs),
        mode=node.mode if node.kind == "source" else "",
        output_mode=node.output_mode if node.kind == "target" else "",
        trigger=str(node.trigger) if node.kind == "target" else "",
        functions=_functions(plan.definition.module_folder, gem),
        places={
            option: tuple(map(clean.place, texts))
            for option, texts in sorted(places.items())
            if not _names_unset(node.options, texts)
        },
        readers=readers if node.kind == "source" and node.mode == "stream" else (),
        columns=None if columns is None else tuple((clean(c.name), _clean(c.type, clean)) for c in columns),
        was=node.was,
    )


def _names_unset(given: Any, places: Iterable[str]) -> bool:
    """Whether the name of a variable that isn't set stands in for a part of a place, which isn't known."""
    if isinstance(given, dict | list):
        inner = given.values() if isinstance(given, dict) else given
        return any(_names_unset(item, places) for item in inner)
    unset = isinstance(given, Unknown) and not isinstance(given, UnresolvedSecret)
    return unset and any(given in place for place in places)


def _clean(text: str | None, clean: Callable[[str], str]) -> str | None:
    return None if text is None else clean(text)


def _options(node: Node, gem: Gem, clean: Cleaner) -> dict[str, Any]:
    """All options of a node as JSON has them, defaults too, with markers where they aren't kept."""
    kind = type(gem.options)
    secret = _secret_names(kind)
    given = {kind.canonical(key) or key: value for key, value in node.options.items()}
    dumped = gem.options.model_dump(mode="json", exclude=set(secret), warnings=False)
    found: dict[str, Any] = {}
    for name in kind.model_fields:
        if name in secret:
            found[name] = None if getattr(gem.options, name) is None else SECRET
        else:
            found[name] = _kept(given.get(name), dumped.get(name), clean)
    return withheld(found, free_mappings(kind))


@cache
def _secret_names(options: type[Options]) -> frozenset[str]:
    return frozenset(options.secret_names())


@cache
def free_mappings(options: type[Options]) -> frozenset[str]:
    """The options that take anything by any key; what is put into columns has a type that says so."""
    fields = options.model_fields.items()
    return frozenset(name for name, info in fields if _takes_anything(info.annotation))


def _takes_anything(kind: Any) -> bool:
    if get_origin(kind) not in {dict, Mapping}:
        return any(_takes_anything(part) for part in get_args(kind) if get_origin(kind) is not list)
    _, value = get_args(kind)
    return value is Any or {str, int} <= set(get_args(value))


def _kept(given: Any, value: Any, clean: Cleaner) -> Any:
    """What is kept of an option's value.

    Args:
        given: The value as the file gives it, its texts marked by where they come from.
        value: The value in effect, as JSON has it.
        clean: Takes secrets out of texts.
    """
    if given is None:
        return _hidden(value)
    if isinstance(given, Secret | UnresolvedSecret):
        return with_text(SECRET, _written(given, value))
    if isinstance(given, FromEnvironment | Unknown):
        # A number or a switch is no secret, and worth comparing.
        is_text = isinstance(value, str | list | dict)
        return with_text(ENVIRONMENT, _written(given, value)) if is_text else value
    if isinstance(given, dict) and isinstance(value, dict):
        if given.keys() <= value.keys():
            return {hidden(key): _kept(given.get(key), item, clean) for key, item in value.items()}
    elif isinstance(given, list) and isinstance(value, list) and len(given) == len(value):
        return [_kept(one, other, clean) for one, other in zip(given, value, strict=True)]
    # The gem has made something else of it, so that it can't be said where a part of it went.
    if isinstance(given, dict | list) or not isinstance(value, str):
        marker = _marker(given)
        if marker is not None:
            return marker
    return _hidden(value)


def _written(given: str, value: Any) -> str | None:
    """A text with its references standing in it; None where what stands around them is a part of a secret."""
    text = written(given)
    return None if text is None or value == HIDDEN else hidden(text)


def _hidden(value: Any) -> Any:
    if isinstance(value, str):
        return hidden(value)
    if isinstance(value, dict):
        return {hidden(key): _hidden(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_hidden(item) for item in value]
    return value


def _marker(given: Any) -> dict[str, bool] | None:
    """What stands for a value with a secret, or a text of the environment, somewhere in it."""
    if isinstance(given, Secret | UnresolvedSecret):
        return SECRET
    if isinstance(given, FromEnvironment | Unknown):
        return ENVIRONMENT
    inner = given.values() if isinstance(given, dict) else given if isinstance(given, list) else ()
    found = [marker for item in inner if (marker := _marker(item)) is not None]
    return SECRET if SECRET in found else (found[0] if found else None)


def _functions(folder: Path, gem: Gem) -> dict[str, str]:
    values = ((name, getattr(gem.options, name)) for name in _function_options(type(gem.options)))
    return {name: function_hash(value, folder) for name, value in values if isinstance(value, str)}


@cache
def _function_options(options: type[Options]) -> tuple[str, ...]:
    fields = options.model_fields.items()
    return tuple(name for name, info in fields if _names_function([info.annotation, *info.metadata]))


_FUNCTION = get_args(FunctionReference)[1]


def _names_function(parts: list[Any]) -> bool:
    return any(part is _FUNCTION or _names_function(list(get_args(part))) for part in parts)


def _operators(plan: Plan, target: str, clean: Cleaner, folder: Path) -> tuple[OperatorRecord, ...]:
    (facts,) = inputs_of(plan.node(target), plan.facts)
    operators = Ancestry(facts.operators).operators
    position = {id(operator): number for number, operator in enumerate(operators)}
    stateful = Counter(operator.node for operator in operators if operator.stateful)
    found = []
    for number, operator in enumerate(operators):
        # Of a node with several nobody says which of them keeps what.
        alone = operator.stateful and stateful[operator.node] == 1
        keys, values = _kept_by(plan, operator.node, clean) if alone else (None, None)
        inputs = tuple(position[id(before)] for before in operator.inputs)
        details = dict(_details(operator, clean))
        if isinstance(operator, StatefulOperator):
            states = processor_states(operator.processor, folder)
            details |= {"states": _as_json(states, clean)} if states else {}
        found.append(
            OperatorRecord(
                number, operator.kind, operator.node, inputs, operator.stateful, details, keys, values
            )
        )
    return tuple(found)


Texts = tuple[str, ...]


def _kept_by(plan: Plan, node: str, clean: Cleaner) -> tuple[Texts | None, Texts | None]:
    """What a node's state is kept by and what is kept, with types, as far as its gem says."""
    gem = cast("Transform", plan.gems[node])
    lineage = lineage_of(gem, inputs_of(plan.node(node), plan.facts))
    if lineage is None or lineage.kept is None or lineage.kept.key_types is None:
        return None, None
    kept = lineage.kept
    types = [kind or "unknown" for kind in kept.key_types or ()]
    keys = kept.parts or kept.keys
    if types and len(keys) % len(types) == 0:
        each = len(keys) // len(types)  # of a join what is equal to it comes behind each
        of = [keys[first : first + each] for first in range(0, len(keys), each)]
        made = [sorted({use.partition(":")[2] for key in one for use in key.uses or ()}) for one in of]
        types = [
            f"{kind} of {', '.join(columns)}" if columns else kind
            for kind, columns in zip(types, made, strict=True)
        ]
    values: Texts | None = None
    if kept.rows and not kept.values:
        values = _kept_rows(plan, node, clean)
    elif None not in kept.values.values():
        values = tuple(
            clean(f"{column or text}: {', '.join(kind.removesuffix('!') for kind in kinds)}")
            for column, buffers in kept.values.items()
            for text, kinds in (buffers or {}).items()
        )
    return tuple(map(clean, types)), values


def _kept_rows(plan: Plan, node: str, clean: Cleaner) -> Texts | None:
    """The columns of each input, of which Spark keeps what is read, with types; None for unknown ones."""
    found = []
    inputs = plan.node(node).inputs
    for edge, facts in zip(inputs, inputs_of(plan.node(node), plan.facts), strict=True):
        if facts.columns is None:
            return None
        found += [clean(f"{edge.name}.{column.name}: {column.type or 'unknown'}") for column in facts.columns]
    return tuple(found)


_COMMON = frozenset(f.name for f in fields(Operator))


def _details(operator: Operator, clean: Cleaner) -> Iterator[tuple[str, Any]]:
    """What an operator's class says beyond its kind; not where in the file it says so."""
    for made in fields(operator):
        value = getattr(operator, made.name)
        if made.name in _COMMON or made.name.endswith("option") or value is None:
            continue
        if made.default is MISSING or value != made.default:
            yield made.name, _as_json(value, clean)


def _as_json(value: Any, clean: Cleaner) -> Any:
    if isinstance(value, EventTime):
        return clean(value.name)
    if isinstance(value, tuple | list):
        return [_as_json(item, clean) for item in value]
    if isinstance(value, dict):
        return {clean(key): _as_json(item, clean) for key, item in value.items()}
    return clean(value) if isinstance(value, str) else value


def _settings(
    plan: Plan, target: str, clean: Cleaner, environment: Mapping[str, str] | None
) -> dict[str, str]:
    """What is said of Spark's settings, by whoever wins."""
    said: dict[str, str] = dict(load_settings(plan.definition.settings_folder, environment).spark)
    for name in plan.upstream([target]):
        said |= plan.gems[name].session_settings()
    said |= plan.definition.spark
    return {key: clean(value) for key, value in sorted(said.items())}
