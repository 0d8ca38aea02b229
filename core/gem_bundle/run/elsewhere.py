"""What a session that wasn't started here can't do for a pipeline, found before anything starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle.check.stages.versions import TargetSpark, check_versions
from gem_bundle.contexts import is_over_connect
from gem_bundle.diagnostics import Diagnostic, listed_names
from gem_bundle.pipeline.groups import groups_of
from gem_bundle.run.jars import fill, spark_version
from gem_bundle.run.setting import value_of
from gem_bundle.types import is_remote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.session import Session

_DATABRICKS = "DATABRICKS_RUNTIME_VERSION"
# What a job's own Python and Spark's server both see there.
_SHARED_ON_DATABRICKS = ("/Volumes/", "/Workspace/", "/dbfs/")
_WHO = {"project": "the project wants", "gem": "its gems need", "pipeline": "the pipeline wants"}


def lacking(plan: Plan, session: Session, nodes: Iterable[str]) -> Iterator[Diagnostic]:
    """What the session lacks of what some nodes of a pipeline need.

    Args:
        plan: The pipeline.
        session: The session; of one that was started for this run nothing is lacking.
        nodes: The ids of the nodes that are to run.
    """
    yield from _fixed_settings(plan, session)
    if is_over_connect(session.spark):
        yield from _unseen_places(plan, session.spark, list(nodes))


def check_jars(plan: Plan, session: Session, nodes: Iterable[str]) -> list[Diagnostic]:
    """GB502: jars that a session whose jars somebody else chose hasn't got.

    Args:
        plan: The pipeline.
        session: The session; of one that was started with this run's jars nothing is asked.
        nodes: The ids of the nodes that are to run.
    """
    if session.has_own_jars or _is_databricks(session.spark):
        return []
    wanted = {name: list(plan.gems[name].jar_classes()) for name in nodes if name in plan.gems}
    every = dict.fromkeys(found for classes in wanted.values() for found in classes)
    absent = {found for found in every if not has_class(session.spark, found)}
    return [
        _without_jars(plan, name, missing)
        for name, classes in wanted.items()
        if (missing := [found for found in classes if found in absent])
    ]


def has_class(spark: SparkSession, name: str) -> bool:
    """Whether a session has a Java class, without using it.

    Spark's function ``reflect`` looks for the class and then for the method when a query is analysed, and
    says which of them isn't there.

    Args:
        spark: The session, of whatever kind.
        name: The full name of the class.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql.functions import lit, reflect

    try:
        spark.range(1).select(reflect(lit(name), lit("none"))).schema  # noqa: B018 (asks Spark)
    except AnalysisException as error:
        return error.getCondition() != "DATATYPE_MISMATCH.UNEXPECTED_CLASS_TYPE"
    return True


def check_groups(plan: Plan, spark: SparkSession, targets: Iterable[Node]) -> list[Diagnostic]:
    """GB386: that a server can't write the groups of a run.

    Args:
        plan: The pipeline.
        spark: The session; over one that isn't a server's nothing is wrong.
        targets: The targets that are to run.
    """
    if not is_over_connect(spark):
        return []
    grouped = groups_of(plan, list(targets))
    return [_group_over_connect(plan, node, group.name) for group in grouped for node in group.targets]


def check_version(plan: Plan, spark: SparkSession, nodes: Iterable[str]) -> list[Diagnostic]:
    """GB370: what a server's Spark lacks that the installed pyspark has, such as a trigger.

    Args:
        plan: The pipeline.
        spark: The session; any other than a server's is of the Spark that the pipeline was checked for.
        nodes: The ids of the nodes that are to run.
    """
    if not is_over_connect(spark):
        return []
    chosen = {None, *nodes}
    server = TargetSpark(spark.version, "Run it on a server of a newer Spark, or do without.")
    known = {(found.path, found.code) for found in check_versions(plan, TargetSpark(None))}
    found = [each for each in check_versions(plan, server) if (each.path, each.code) not in known]
    return [each for each in found if each.node in chosen and each.severity != "note"]


def _group_over_connect(plan: Plan, node: Node, group: str) -> Diagnostic:
    path = (*node.path, "group")
    declared = bool(node.group) and not node.leads
    message = (
        f"target `{node.id}`: the group `{group}` can't be written over Spark Connect"
        if declared
        else f"target `{node.id}`: what it rejects can't be learned over Spark Connect"
    )
    hint = "Run it in a session of its own"
    hint += ", or remove `group`: then each target has a query." if declared else "."
    return Diagnostic("GB386", "error", message, node.id, path, plan.definition.locator.place(path), hint)


def _is_databricks(spark: SparkSession) -> bool:
    """Whether Databricks runs the session: it has Delta, Kafka and drivers of its own, under other names."""
    if _DATABRICKS in os.environ:
        return True
    return value_of(spark, "spark.databricks.clusterUsageTags.sparkVersion") is not None


def _without_jars(plan: Plan, name: str, missing: list[str]) -> Diagnostic:
    node = plan.node(name)
    filled = [fill(jar, spark_version=spark_version()) for jar in plan.gems[name].jars()]
    named = listed_names(missing)
    message = f"{node.kind} `{name}`: the session that runs has no {named}, which the gem `{node.gem}` needs"
    place = plan.definition.locator.place(node.path, key=True)
    hint = f"Start that session, or its server, with `--packages {','.join(filled)}`."
    return Diagnostic("GB502", "error", message, name, node.path, place, hint)


def _fixed_settings(plan: Plan, session: Session) -> Iterator[Diagnostic]:
    """The settings that somebody chose, and that only a session's start can set."""
    definition = plan.definition
    for setting in session.refused:
        who = _WHO.get(setting.origin)
        if who is None:
            continue
        message = (
            f"{who} `{setting.key}` to be `{setting.value}`, and the session that runs "
            "already has it otherwise: only its start can set it"
        )
        path = ("spark", setting.key) if setting.key in definition.spark else ()
        place = definition.locator.place(path, key=True)
        hint = f"Start the session or the server with `--conf {setting.key}={setting.value}`."
        yield Diagnostic("GB513", "warning", message, None, path, place, hint)


def _unseen_places(plan: Plan, spark: SparkSession, nodes: list[str]) -> Iterator[Diagnostic]:
    """That a server has another disk than this machine, and what of the pipeline lies on it."""
    definition = plan.definition
    named = list(dict.fromkeys(_local_places(plan, nodes)))
    ours = Path(definition.file or definition.folder).absolute()
    if not named or sees(spark, ours):
        return
    message = (
        f"the server doesn't see this machine's files ({ours} isn't there), and looks on its own "
        f"disk for {', '.join(named)}"
    )
    hint = "Give them places that both machines see: a folder that they share, or a URL such as `s3a://…`."
    yield Diagnostic("GB514", "warning", message, None, (), definition.locator.place(()), hint)


def sees(spark: SparkSession, place: Path) -> bool:
    """Whether the server of a session sees a file or a folder of this machine, as far as it says."""
    from pyspark.errors import AnalysisException

    try:
        spark.read.text(place.absolute().as_uri()).schema  # noqa: B018 (asks the server)
    except AnalysisException as error:
        return error.getCondition() != "PATH_NOT_FOUND"
    return True


def _local_places(plan: Plan, nodes: list[str]) -> Iterator[str]:
    """What of some nodes lies on a disk, in words."""
    definition = plan.definition
    for name in nodes:
        node = plan.node(name)
        gem = plan.gems[name]
        if node.kind == "target" and _is_on_a_disk(definition.checkpoint(name)):
            yield f"the checkpoint of `{name}`"
        places: Mapping[str, Iterable[str]] = getattr(gem, "places", dict)()
        for option, found in places.items():
            if any(_is_on_a_disk(place) for place in found):
                yield f"`{option}` of `{name}`"


def _is_on_a_disk(place: str) -> bool:
    """Whether a place is one of each machine's own."""
    if _DATABRICKS in os.environ and place.startswith(_SHARED_ON_DATABRICKS):
        return False
    return not is_remote(place)
