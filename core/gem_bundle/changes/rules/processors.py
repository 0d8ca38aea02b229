"""The state of stateful processors: whether Spark reads what the class asks for out of what it has kept.

Measured on Spark 4.2. By default values are read by the positions of their columns, and all types have to be
the same. With `spark.sql.streaming.stateStore.encodingFormat: avro`, which a checkpoint has from its first
run, they are read by the names of their columns, and may have more, fewer and wider ones. A state that is new
is empty, and one that isn't asked for any more is left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.schema import fields_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gem_bundle.changes.comparison import Comparison
    from gem_bundle.changes.model import Change
    from gem_bundle.changes.record import VersionRecord
    from gem_bundle.schema import StructField

_ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
# What Avro reads as something wider, in the types that Spark has for it.
_WIDER = {
    "int": {"bigint", "float", "double"},
    "bigint": {"float", "double"},
    "float": {"double"},
}
_ATOMIC = frozenset({*_WIDER, "double", "boolean", "string", "binary", "date", "timestamp"})

States = dict[str, tuple[str, ...]]


def refuse_other_schemas(both: Comparison, changes: list[Change]) -> list[Change]:
    """The changes, with those refused that ask for a state in another shape than it was kept in.

    Args:
        both: What is compared.
        changes: What the other rules say.
    """
    before, after = _states(both.old.version), _states(both.new.version)
    refused: list[Change] = []
    for old, new in both.pairs:
        if old.id in before and new.id in after:
            refused += _refused(both, new.id, before[old.id], after[new.id])
    # That its class is another one is told by this, and worse.
    told = {change.path for change in refused}
    return [*(c for c in changes if c.path not in told or c.verdict != "mixed"), *refused]


def _states(version: VersionRecord) -> dict[str, States]:
    """The states of processors, by node."""
    return {
        operator.node: {name: tuple(kept) for name, kept in operator.details["states"].items()}
        for operator in version.operators
        if operator.details.get("states")
    }


def _refused(both: Comparison, node: str, before: States, after: States) -> Iterator[Change]:
    avro = (both.frozen(_ENCODING) or "").lower() == "avro"
    for name, (kind, *schemas) in after.items():
        if name not in before:
            continue
        was, *former = before[name]
        why = ""
        if was != kind:
            why = f"it was a {was} and is a {kind}"
        elif schemas != former:
            why = _other_key(former, schemas) or _other_value(former[-1], schemas[-1], avro=avro)
        if not why:
            continue
        hint = f"Put it back, or keep what is new in a state of another name. {both.begin_anew}"
        if not avro and was == kind and former[:-1] == schemas[:-1]:
            hint += f" Then `{_ENCODING}: avro` under `spark` lets columns come and go later."
        message = (
            f"transform `{node}`: the state `{name}` gets another shape, and Spark refuses to go on: {why}"
        )
        yield both.of_state(
            "refused",
            "GB422",
            message,
            node,
            difference=f"transform `{node}`: the state `{name}` gets another shape",
            option="processor",
            hint=hint,
            before=list(before[name]),
            after=list(after[name]),
        )


def _other_key(old: Sequence[str], new: Sequence[str]) -> str:
    """Why Spark doesn't find the keys of a map; empty where it does, and where that can't be told."""
    if len(new) < 2:
        return ""
    one, other = fields_of(old[0]), fields_of(new[0])
    if one is None or other is None or _types(one) == _types(other):
        return ""
    return f"its keys were `{old[0]}` and are `{new[0]}`"


def _other_value(old: str, new: str, *, avro: bool) -> str:
    """Why Spark doesn't read the values; empty where it does, and where that can't be told."""
    one, other = fields_of(old), fields_of(new)
    if one is None or other is None:
        return ""
    if not avro:
        return "" if _types(one) == _types(other) else f"it was `{old}` and is `{new}`"
    former = {made.name: str(made.type) for made in one}
    for made in other:
        was, kind = former.get(made.name), str(made.type)
        known = was in _ATOMIC and kind in _ATOMIC
        if was is not None and known and was != kind and kind not in _WIDER.get(was, ()):
            return f"`{made.name}` was {was} and is {kind}, which Avro doesn't read it as"
    return ""


def _types(fields: Sequence[StructField]) -> list[str]:
    """The types of columns, without the names of what is in them."""
    return [_type(made) for made in fields]


def _type(made: StructField) -> str:
    kind = made.type
    inner = [*(str(part) for part in kind.parts), *map(_type, kind.fields)]
    return f"{kind.name}{kind.arguments}{inner}"
