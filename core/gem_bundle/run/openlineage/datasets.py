"""What a pipeline reads and writes, as OpenLineage names it, and which columns come from which."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from gem_bundle.check.stages.inference import infer, inputs_of
from gem_bundle.facts import output_key
from gem_bundle.lineage import column_keys
from gem_bundle.types import local_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gem_bundle.facts import Column
    from gem_bundle.gem import Source, Target, Transform
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan

_TABLE = "table:"
# As OpenLineage's rules of naming spell the schemes of stores.
_SCHEMES = {"s3a": "s3", "s3n": "s3"}
_JDBC = re.compile(r"jdbc:(?P<kind>\w+):(?://)?(?P<host>[^/?;#]*)/?(?P<database>[^#]*)#(?P<table>.+)", re.S)
_DATABASES = {"postgresql": ("postgres", "5432"), "mysql": ("mysql", "3306"), "mariadb": ("mysql", "3306")}

Origin = tuple[str, str]
"""A column of a source: the source's id, and the column's name."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A place that is read or written.

    Args:
        node: The id of the node that reads or writes it.
        namespace: Where it is, by OpenLineage's rules of naming.
        name: What it is called there.
        columns: Its columns, as far as they are known.
    """

    node: str
    namespace: str
    name: str
    columns: tuple[Column, ...] = field(default=())


def named(place: str, namespace: str) -> tuple[str, str]:
    """The namespace and the name of a place, by OpenLineage's rules of naming.

    Args:
        place: The place as a gem gives it: a path, a URL, or ``table:`` and the name of a table.
        namespace: That of the jobs, for tables whose catalog is known to the session only.
    """
    if place.startswith(_TABLE):
        return namespace, place.removeprefix(_TABLE)
    database = _JDBC.fullmatch(place)
    if database is not None:
        kind, port = _DATABASES.get(database["kind"], (database["kind"], ""))
        host = database["host"].rpartition("@")[2]
        if port and not re.search(r":\d+$", host):
            host = f"{host}:{port}"
        table = (
            database["table"]
            if "." in database["table"] or kind != "postgres"
            else f"public.{database['table']}"
        )
        return f"{kind}://{host}", f"{database['database']}.{table}" if database["database"] else table
    path = re.sub(r"/\*\*$", "", place)
    local = local_path(path)
    if local is not None:
        return "file", str(Path(local).absolute())
    url = urlsplit(path)
    scheme = _SCHEMES.get(url.scheme, url.scheme)
    name = url.path if scheme in {"hdfs", "dbfs"} else url.path.strip("/")
    return f"{scheme}://{url.netloc.rpartition('@')[2] if scheme == 'kafka' else url.netloc}", name or "/"


def with_columns(plan: Plan) -> Plan:
    """A plan that knows the columns of what its sources find, where nobody declares them.

    The run goes by the plan that was checked.

    Args:
        plan: That plan.
    """
    sources = plan.definition.of_kind("source")
    if all(facts.columns is not None for node in sources if (facts := plan.facts.get(node.id)) is not None):
        return plan
    found, _ = infer(plan.definition, dict(plan.gems), plan.order, discover=True)
    return replace(plan, facts=found)


def datasets(plan: Plan, nodes: Iterable[Node], namespace: str) -> list[Dataset]:
    """What some sources and targets read and write; one that names no place has none.

    Args:
        plan: The pipeline.
        nodes: The sources and targets.
        namespace: As `named` takes it.
    """
    found: list[Dataset] = []
    for node in nodes:
        gem = cast("Source | Target", plan.gems[node.id])
        key = node.inputs[0].key if node.kind == "target" else node.id
        facts = plan.facts.get(key)
        columns = (facts.columns or ()) if facts is not None else ()
        names = {
            named(places[0] if _of_one_cluster(places) else place, namespace): None
            for places in map(list, gem.places().values())
            for place in places
        }
        found += [Dataset(node.id, *name, columns) for name in names]
    return found


def _of_one_cluster(places: list[str]) -> bool:
    """Whether places are one topic, named by each of its brokers: the first stands for it."""
    topics = {place.rpartition("/")[2] for place in places}
    return bool(places) and places[0].startswith("kafka://") and len(topics) == 1


def origins(plan: Plan, target: Node) -> dict[str, frozenset[Origin]]:
    """Which columns of sources each column that reaches a target comes from; those not known aren't there."""
    known: dict[str, Mapping[str, frozenset[Origin] | None]] = {}
    for name in plan.upstream([target.id]):
        node = plan.node(name)
        if node.kind == "source":
            facts = plan.facts.get(name)
            keys = column_keys(facts.columns) if facts is not None else None
            known[name] = {key: frozenset({(name, key)}) for key in keys or ()}
        elif node.kind == "transform":
            made = _made(plan, node, known)
            for output in plan.facts:
                if output == name or output.startswith(f"{name}."):
                    known[output] = made
    edge = target.inputs[0]
    reaching = known.get(output_key(edge.node, edge.output)) or known.get(edge.node) or {}
    return {column: found for column, found in reaching.items() if found}


def _made(
    plan: Plan, node: Node, known: Mapping[str, Mapping[str, frozenset[Origin] | None]]
) -> dict[str, frozenset[Origin] | None]:
    lineage = cast("Transform", plan.gems[node.id]).lineage(*inputs_of(node, plan.facts))
    if lineage is None:
        return {}
    inputs = [known.get(edge.key) or known.get(edge.node) or {} for edge in node.inputs]
    found: dict[str, frozenset[Origin] | None] = {}
    for column, made in lineage.columns.items():
        found[column] = None
        if made.uses is None:
            continue
        parts = [inputs[int(use.partition(":")[0])].get(use.partition(":")[2]) for use in made.uses]
        if None not in parts:
            found[column] = frozenset().union(*(part for part in parts if part is not None))
    return found
