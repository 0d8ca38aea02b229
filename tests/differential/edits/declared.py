"""Edits of what a pipeline declares beside its transforms: schemas of sources, triggers, and Spark's settings.

They are drawn apart from the others, so that those of a seed stay what they were.
"""

from __future__ import annotations

import copy
from random import Random
from typing import TYPE_CHECKING, Any

from gem_bundle.schema import fields_of
from tests.differential.edits.draw import Edit, needed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.differential.edits.draw import Values

SHARE = 0.4
"""How many pipelines get one of these edits."""

_OTHER_TYPES = {
    "string": ["bigint", "timestamp"],
    "bigint": ["int", "string", "double"],
    "int": ["bigint", "string"],
    "double": ["float", "string", "decimal(10,2)"],
    "decimal(10,2)": ["double", "decimal(12,2)", "string"],
    "boolean": ["string"],
    "timestamp": ["string", "timestamp_ntz", "date"],
    "date": ["timestamp", "string"],
}
_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.multipleWatermarkPolicy": "max",
    "spark.sql.streaming.stateStore.providerClass": _STORE,
    "spark.sql.streaming.stateStore.compression.codec": "zstd",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.caseSensitive": "true",
}


def declared_edits(seed: str, values: Values, target: str) -> list[Edit]:
    """An edit of a pipeline's declarations, for some seeds.

    Args:
        seed: What the pipeline came from.
        values: Version 1, with nothing but the target and what it needs.
        target: The target.
    """
    random = Random(f"{seed}:declared")
    if random.random() >= SHARE:
        return []
    made = random.choice(_KINDS)(copy.deepcopy(values), target, random)
    return [] if made is None else [made]


def _schema(values: Values, target: str, random: Random) -> Edit | None:
    """A column more, a column less, one by another name or of another type, or in another order."""
    names = [name for name in needed(values, target) if "schema" in _options(values, name)]
    if not names:
        return None
    name = random.choice(names)
    fields = [[f.name, str(f.type)] for f in fields_of(values["sources"][name]["options"]["schema"]) or ()]
    place = random.randrange(len(fields))
    kind = random.choice(["added", "left out", "retyped", "retyped", "renamed", "reordered"])
    if kind == "added":
        fields.insert(random.choice([place, len(fields)]), ["added", "string"])
    elif kind == "left out":
        del fields[place]
    elif kind == "retyped":
        found = [field for field in fields if field[1] in _OTHER_TYPES]
        field = random.choice(found)
        field[1] = random.choice(_OTHER_TYPES[field[1]])
    elif kind == "renamed":
        fields[place][0] += "_x"
    else:
        random.shuffle(fields)
    values["sources"][name]["options"]["schema"] = ", ".join(" ".join(field) for field in fields)
    return Edit(f"column {kind}", values, name)


def _options(values: Values, name: str) -> dict[str, Any]:
    node = values["sources"].get(name, {})
    return (node.get("options") or {}) if node.get("gem") == "file" else {}


def _trigger(values: Values, target: str, random: Random) -> Edit | None:
    """Another trigger."""
    values["targets"][target]["trigger"] = {"processing_time": random.choice(["1 second", "1 minute"])}
    return Edit("trigger", values, target)


def _setting(values: Values, target: str, random: Random) -> Edit | None:
    """One of Spark's settings more."""
    key = random.choice(list(_SETTINGS))
    values["spark"] = {key: _SETTINGS[key]}
    return Edit(f"setting {key.rpartition('.')[2]}", values)


_KINDS: list[Callable[[Values, str, Random], Edit | None]] = [_schema, _schema, _schema, _trigger, _setting]
