"""The record beside a checkpoint: which versions of a pipeline ran on it, and from which micro-batch on.

`gem_bundle.changes.canonical` makes a version of a checked pipeline, and `gem_bundle.changes.history` decides
whether it is a new one. A record holds no secret: where an option has one stands a marker.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from gem_bundle.changes.reading import check_plain
from gem_bundle.changes.withheld import as_kept_before, has_marker, withheld, without_logins
from gem_bundle.diagnostics import listed_names
from gem_bundle.facts import output_key
from gem_bundle.files import open_folder, split
from gem_bundle.pipeline.secrets import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = 1
"""The number of the format that is written; it grows when older gem-bundles can't read what is written."""

_INPUTS = {"source": (0, 0), "transform": (1, sys.maxsize), "target": (1, 1)}
"""How many inputs a node has at least and at most, by its kind."""

_BEFORE_HOST = re.compile(r"(?<=://)[^/@\s]+@")


class RecordError(ValueError):
    """What is there is no record, or one that can't be read; the text says why, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class InputRecord:
    """One input of a node.

    Args:
        node: The id of the node it comes from.
        output: The named output of that node; empty where it has one.
        name: How expressions call it.
    """

    node: str
    output: str = ""
    name: str = ""

    @property
    def key(self) -> str:
        """By which the facts of what comes in are found among a side's."""
        return output_key(self.node, self.output)


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node as it was when it ran.

    Args:
        id: Its id.
        kind: ``source``, ``transform`` or ``target``.
        gem: The name of its gem.
        distribution: The distribution that the gem comes from.
        distribution_version: Its version.
        options: All options by their canonical names, with the values in effect, as JSON has them; `SECRET`
            and `ENVIRONMENT` stand for what isn't kept, with the text as it is written where that is known.
        inputs: Its inputs, in order.
        mode: For a source: ``stream`` or ``batch``.
        output_mode: For a target.
        trigger: For a target: the kind, and its interval where it has one:
            ``processing_time: 10 seconds``.
        functions: What identifies the Python code that an option names, by the option: a hash that
            formatting and comments don't change. Empty text where the code couldn't be found.
        places: Where a source reads and a target writes, by the option that says so.
        readers: For a source that is read as a stream: the names of its readers in the checkpoint.
        columns: The names and types of the columns that flow out of it (for a target, into it); None where
            they aren't known, as a type may be.
        was: Its former ids.
    """

    id: str
    kind: str
    gem: str
    distribution: str = ""
    distribution_version: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[InputRecord, ...] = ()
    mode: str = ""
    output_mode: str = ""
    trigger: str = ""
    functions: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    readers: tuple[str, ...] = ()
    columns: tuple[tuple[str, str | None], ...] | None = None
    was: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """What checkpoints know it by: the id that it had first."""
        return self.was[-1] if self.was else self.id

    def is_same(self, other: NodeRecord) -> bool:
        """Whether both are one, the entries of their options in one order.

        Such an order may decide: a route asks one condition after the other.

        Args:
            other: The node of another version.
        """
        return self == other and repr(self.options) == repr(other.options)


@dataclass(frozen=True, slots=True)
class OperatorRecord:
    """An operator of the query that streams restrict, as the checker knows it.

    Args:
        position: Its position, from 0: those before it in the query come before it.
        kind: As `gem_bundle.operators.Operator.kind`.
        node: The id of the node it belongs to.
        inputs: The positions of the operators just before it.
        stateful: Whether it keeps state; None when that can't be told.
        details: What else is known of it, by the names of the fields of its class in
            `gem_bundle.operators`, without what is unknown: the column and the delay of a watermark, how two
            streams are joined. Of a stateful processor also ``states``: by name the kind and the schemas of
            the state that its source asks for.
        keys: What its state is kept by, each as its type and the columns it is made of: ``string of id``;
            None when that isn't known.
        values: What is kept, each as a column that comes out and the types that Spark keeps for it:
            ``n: bigint``; None when that isn't known.
    """

    position: int
    kind: str
    node: str
    inputs: tuple[int, ...] = ()
    stateful: bool | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    keys: tuple[str, ...] | None = None
    values: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """A change that somebody took on purpose.

    Args:
        code: The diagnostic code.
        node: The id of the node it was taken for; empty for all of them.
        at: When, in ISO 8601.
    """

    code: str
    node: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """What ran on a checkpoint from one micro-batch on: the part of the pipeline that leads to the target.

    Args:
        first_batch: The first micro-batch that it ran.
        started: When its first run started, in ISO 8601.
        pipeline: The pipeline's name.
        pipeline_version: The pipeline's version.
        gem_bundle: The version of gem-bundle.
        spark: The version of Spark.
        python: The version of Python.
        folder: The folder of the pipeline file, absolute.
        checkpoint: The checkpoint's location.
        nodes: The nodes that lead to the target, it too, inputs first.
        operators: The operators of its query, inputs first.
        settings: The settings that Spark freezes with a checkpoint, as far as the pipeline, its project and
            its gems say them.
        deciding: The settings that decide on what expressions give, as far as they are said, and not Spark's
            defaults; None in a record of an earlier gem-bundle, which kept none.
        zone: The time zone that it had where no setting gave one; empty where that isn't known.
        accepted: The changes that were taken on purpose with it.
        continues: The location of the checkpoint whose offsets this one began with (`run --fresh`); else
            empty.
    """

    first_batch: int
    started: str
    pipeline: str
    pipeline_version: str
    gem_bundle: str
    spark: str
    python: str
    folder: str
    checkpoint: str
    nodes: tuple[NodeRecord, ...]
    operators: tuple[OperatorRecord, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    deciding: Mapping[str, str] | None = None
    zone: str = ""
    accepted: tuple[Accepted, ...] = ()
    continues: str = ""

    def node(self, name: str) -> NodeRecord | None:
        """The node of that id, if there is one."""
        return next((node for node in self.nodes if node.id == name), None)

    def is_same(self, other: VersionRecord) -> bool:
        """Whether both are one version: all is equal but when each started, and what was accepted for it.

        A mapping in another order is another one: columns come in it, and conditions are asked in it. Time
        zones are compared where both are known.
        """
        known = bool(self.zone and other.zone)
        if _timeless(self, with_zone=known) != _timeless(other, with_zone=known):
            return False
        one, two = ([json.dumps(node.options) for node in version.nodes] for version in (self, other))
        return one == two

    def as_known_by(self, old: VersionRecord) -> VersionRecord:
        """The same version, of which no more is known than another one tells.

        Texts around references aren't compared with an older gem-bundle's record, which kept none. A place
        that is the same is, whichever variable says so; and one whose variable isn't set is where it was.

        Args:
            old: What it is compared with.
        """
        former = {node.identity: node for node in old.nodes}
        return replace(self, nodes=tuple(_as_known(former.get(node.identity), node) for node in self.nodes))


def _as_known(old: NodeRecord | None, node: NodeRecord) -> NodeRecord:
    if old is None or old.gem != node.gem or (old.options == node.options and old.places == node.places):
        return node
    options: dict[str, Any] = {}
    places = dict(node.places)
    for name, value in node.options.items():
        before = old.options.get(name)
        options[name] = as_kept_before(before, value)
        if name not in old.places:
            continue
        if name not in places:
            if options[name] == before:
                places[name] = old.places[name]
        elif not (has_marker(value) or has_marker(before)):
            continue
        elif places[name] == old.places[name] and HIDDEN not in "".join(places[name]):
            options[name] = before
    return replace(node, options=options, places=dict(sorted(places.items())))


def _timeless(version: VersionRecord, *, with_zone: bool) -> VersionRecord:
    zone = version.zone if with_zone else ""
    return replace(version, first_batch=0, started="", accepted=(), continues="", zone=zone)


def _plain(value: object) -> dict[str, Any]:
    """A data class as JSON takes it; `dataclasses.asdict` copies all that is in it first."""
    if not is_dataclass(value):
        raise TypeError(f"{type(value).__name__} can't be in a record")
    kind: Any = type(value)
    return {name: getattr(value, name) for name, _ in _fields(kind)}


@dataclass(frozen=True, slots=True)
class Record:
    """What ran on the checkpoint of a target.

    Args:
        target: The id of the target.
        versions: What ran, newest last, each from its `VersionRecord.first_batch` on.
        query: The id that Spark gave the checkpoint; empty until a run has seen it.
        format: The number of the format.
    """

    target: str
    versions: tuple[VersionRecord, ...] = ()
    query: str = ""
    format: int = FORMAT

    @property
    def newest(self) -> VersionRecord | None:
        """What ran last."""
        return self.versions[-1] if self.versions else None

    def until(self, next_batch: int) -> Record:
        """The record without the versions that no micro-batch was run with.

        One that a checkpoint was made anew for stays: its state is there.

        Args:
            next_batch: The number of the checkpoint's next new micro-batch.
        """
        ran = (v for v in self.versions if v.first_batch < next_batch + bool(v.continues))
        return replace(self, versions=tuple(ran))

    def as_json(self) -> str:
        """The record as it is kept."""
        # Without line breaks, which would take ten times as long at every start.
        return json.dumps(self, default=_plain, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Record:
        """The record that was kept.

        Raises:
            RecordError: When it isn't one.
        """
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RecordError("is cut off, or isn't JSON") from error
        if not isinstance(content, dict) or not isinstance(content.get("format"), int):
            raise RecordError("isn't a record of gem-bundle")
        if content["format"] > FORMAT:
            raise RecordError(
                f"is of format {content['format']}, and this gem-bundle knows none newer than {FORMAT}"
            )
        try:
            return _record(content)
        except RecordError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RecordError(f"isn't a record of gem-bundle ({type(error).__name__}: {error})") from error


def record_file(checkpoint: str) -> tuple[str, str]:
    """The folder and the name of the record beside a checkpoint."""
    folder, name = split(checkpoint)
    return folder, f".{name}.record.json"


def recorded_targets(folder: str) -> list[str]:
    """The targets that have a record in a folder of checkpoints; none where it can't be seen.

    Args:
        folder: The folder of a pipeline's checkpoints.
    """
    try:
        names = open_folder(folder).names()
    except Exception:  # noqa: BLE001 (every store raises what its client raises)
        return []
    end = ".record.json"
    return sorted(name[1 : -len(end)] for name in names if name.startswith(".") and name.endswith(end))


def read_record(checkpoint: str) -> Record | None:
    """The record beside a checkpoint, if there is one.

    Args:
        checkpoint: The checkpoint's location.

    Raises:
        RecordError: When what is there is no record.
        OSError: When it can't be read; a store may raise what its client raises.
    """
    folder, name = record_file(checkpoint)
    try:
        content = open_folder(folder).read(name)
    except FileNotFoundError:
        return None
    return Record.from_json(content)


def write_record(checkpoint: str, record: Record) -> None:
    """Keep a record beside a checkpoint, in place of the one that is there; a kill leaves one of the two.

    Raises:
        OSError: When it can't be written; a store may raise what its client raises.
    """
    folder, name = record_file(checkpoint)
    open_folder(folder).write(name, record.as_json().encode())


def _record(content: dict[str, Any]) -> Record:
    versions = tuple(_version(item) for item in _list(content["versions"]))
    return Record(_text(content["target"]), versions, _text(content.get("query", "")), content["format"])


def _version(content: Mapping[str, Any]) -> VersionRecord:
    known = _known(VersionRecord, content)
    known["first_batch"] = _number(content["first_batch"])
    known["nodes"] = tuple(_node(item) for item in _list(content["nodes"]))
    known["operators"] = tuple(_operator(item) for item in _list(content.get("operators", [])))
    known["accepted"] = tuple(
        Accepted(**_known(Accepted, item)) for item in _list(content.get("accepted", []))
    )
    known["settings"] = {_text(k): _text(v) for k, v in _mapping(content.get("settings", {})).items()}
    if content.get("deciding") is not None:
        known["deciding"] = {_text(k): _text(v) for k, v in _mapping(content["deciding"]).items()}
    version = VersionRecord(**known)
    wrong = _not_whole(version.nodes)
    if wrong:
        raise RecordError(f"is damaged: in the version from micro-batch {version.first_batch} on {wrong}")
    return version


def _not_whole(nodes: tuple[NodeRecord, ...]) -> str:
    """Why nodes are no pipeline that could have run; an empty text where they are one."""
    by_id = {node.id: node for node in nodes}
    if len(by_id) < len(nodes):
        return "two nodes have the same id"
    if not any(node.kind == "target" for node in nodes):
        return "there is no target"
    for node in nodes:
        if node.kind not in _INPUTS:
            return f"`{node.id}` is a `{node.kind}`, and none of {listed_names(_INPUTS)}"
        least, most = _INPUTS[node.kind]
        if not least <= len(node.inputs) <= most:
            return f"the {node.kind} `{node.id}` has {len(node.inputs)} inputs"
        for edge in node.inputs:
            if edge.node not in by_id:
                return f"`{node.id}` reads `{edge.node}`, which isn't there"
    done: set[str] = set()
    waiting = list(nodes)
    while waiting:
        later = [node for node in waiting if not done.issuperset(edge.node for edge in node.inputs)]
        if len(later) == len(waiting):
            return f"nodes read each other in a circle: it is among {listed_names(node.id for node in later)}"
        done |= {node.id for node in waiting} - {node.id for node in later}
        waiting = later
    return ""


def _node(content: Mapping[str, Any]) -> NodeRecord:
    known = _known(NodeRecord, content)
    given = _plain_mapping(content.get("options", {}))
    # Older gem-bundles kept logins that are written out in an address.
    known["options"] = withheld(given)
    known["inputs"] = tuple(
        InputRecord(**_known(InputRecord, item)) for item in _list(content.get("inputs", []))
    )
    known["functions"] = {_text(k): _text(v) for k, v in _mapping(content.get("functions", {})).items()}
    places = _mapping(content.get("places", {}))
    known["places"] = {
        option: tuple(_place(_text(place), given.get(option)) for place in _list(found))
        for option, found in places.items()
    }
    known["readers"] = tuple(map(_text, _list(content.get("readers", []))))
    known["was"] = tuple(map(_text, _list(content.get("was", []))))
    columns = content.get("columns")
    if columns is not None:
        known["columns"] = tuple(
            (_text(name), kind if kind is None else _text(kind)) for name, kind in _list(columns)
        )
    return NodeRecord(**known)


def _place(place: str, option: Any) -> str:
    """A place with its container, which older gem-bundles left out as if it were a login."""
    if not isinstance(option, str) or _BEFORE_HOST.sub("", option) != place:
        return place
    return without_logins(option)


def _operator(content: Mapping[str, Any]) -> OperatorRecord:
    known = _known(OperatorRecord, content)
    known["position"] = _number(content["position"])
    known["inputs"] = tuple(map(_number, _list(content.get("inputs", []))))
    known["details"] = _plain_mapping(content.get("details", {}))
    if not isinstance(known.get("stateful"), bool | None):
        raise TypeError(f"{known['stateful']!r} is no truth")
    for name in ("keys", "values"):
        if content.get(name) is not None:
            known[name] = tuple(map(_text, _list(content[name])))
    return OperatorRecord(**known)


def _known(kind: Any, content: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that this gem-bundle knows; texts are looked at here."""
    of = _mapping(content)
    found = {}
    for name, is_text in _fields(kind):
        if name in of:
            found[name] = _text(of[name]) if is_text else of[name]
    return found


@cache
def _fields(kind: Any) -> list[tuple[str, bool]]:
    """The names of the fields of what a record is made of, each with whether it is a text."""
    return [(made.name, made.type == "str") for made in fields(kind)]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    if not value.isascii():
        value.encode()
    return value


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no number")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value


def _mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is no mapping")
    return value


def _plain_mapping(value: object) -> dict[str, Any]:
    found = _mapping(value)
    check_plain(found)
    return found
