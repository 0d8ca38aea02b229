"""What a pipeline needs around it: jars, a Java, a Spark session with the right settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.operators import walk
from gem_bundle.run.jars import cache_folder, fill, resolve, spark_version
from gem_bundle.run.session import brings_jars, open_session
from gem_bundle.run.spark_settings import SessionRequest, merge_settings
from gem_bundle.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from gem_bundle.gem import Gem
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.jars import Jar
    from gem_bundle.run.session import Session
    from gem_bundle.run.spark_settings import Layer
    from gem_bundle.run.start_guard import StartGuard
    from gem_bundle.settings import Settings


def needed_jars(plan: Plan, nodes: Iterable[str] | None = None) -> list[str]:
    """The Maven coordinates that the gems of some nodes need, each once, in order.

    Args:
        plan: The pipeline.
        nodes: The nodes; None for all.
    """
    found: dict[str, None] = {}
    version = spark_version()
    for gem in _gems(plan, nodes):
        for coordinate in gem.jars():
            found[fill(coordinate, spark_version=version)] = None
    return list(found)


def project_jars(settings: Settings) -> list[str]:
    """The Maven coordinates that a project asks for beside those of gems, each once, in order.

    Raises:
        GemError: GB502 when one has an unknown placeholder, GB509 without a Spark.
    """
    version = spark_version() if settings.packages else ""
    return list(dict.fromkeys(fill(coordinate, spark_version=version) for coordinate in settings.packages))


def resolve_jars(
    coordinates: Iterable[str], settings: Settings, report: Callable[[str], None] | None = None
) -> list[Jar]:
    """The jar files behind what gems need and what a project asks for, from the cache or from Maven.

    Args:
        coordinates: What the gems need.
        settings: The project's.
        report: Told what is being fetched.

    Raises:
        GemError: GB502 when they can't be had.
    """
    return resolve(
        dict.fromkeys([*coordinates, *project_jars(settings)]),
        overrides=settings.overrides,
        repositories=settings.repositories,
        exclude=settings.exclude,
        report=report,
    )


def needed_settings(plan: Plan, nodes: Iterable[str] | None = None) -> dict[str, str]:
    """The Spark settings that some nodes ask for; settings that are lists are joined.

    Args:
        plan: The pipeline.
        nodes: The nodes; None for all.
    """
    chosen = list(plan.order if nodes is None else nodes)
    layers: list[Layer] = [("gem", gem.session_settings()) for gem in _gems(plan, chosen)]
    if _limit_a_stream(plan, chosen):
        layers.append(("gem", KEEPS_LIMITS))
    return {key: setting.value for key, setting in merge_settings(layers).items()}


KEEPS_LIMITS = {
    "spark.sql.optimizer.excludedRules": ",".join(
        f"org.apache.spark.sql.catalyst.optimizer.{rule}"
        for rule in ("EliminateLimits", "ConvertToLocalRelation", "PropagateEmptyRelation")
    )
}
"""What lets a limit of a stream count on behind a micro-batch without rows, as windows that close have them.

There these rules of Spark's optimizer take the limit out of the plan. Its count isn't written then, what has
state before it gets another's, and the next micro-batch fails (Spark 4.2, `tests/integration/test_run.py`).
"""


def _limit_a_stream(plan: Plan, nodes: Iterable[str]) -> bool:
    known = [facts for name in nodes if (facts := plan.facts.get(name)) is not None]
    # All at once: what one node passes on has passed through the nodes before it.
    passed = walk(o for facts in known if facts.streaming is not False for o in facts.operators)
    return any(operator.kind == "limit" for operator in passed)


def local_settings(plan: Plan, nodes: Iterable[str] | None = None) -> dict[str, str]:
    """The Spark settings that suit the gems of some nodes in a local session."""
    return {key: value for gem in _gems(plan, nodes) for key, value in gem.local_settings().items()}


def find_jars(
    plan: Plan,
    nodes: Iterable[str] | None = None,
    report: Callable[[str], None] | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[Jar]:
    """The jar files that the gems of some nodes and the project need, from the cache or from Maven.

    Args:
        plan: The pipeline.
        nodes: The nodes; None for all.
        report: Told what is being fetched.
        environment: Environment variables; None is the process's.

    Raises:
        GemError: GB502 when they can't be had.
    """
    settings = load_settings(plan.definition.folder, environment)
    return resolve_jars(needed_jars(plan, nodes), settings, report)


def open_plan_session(
    plan: Plan,
    nodes: Iterable[str] | None = None,
    *,
    report: Callable[[str], None] | None = None,
    spark_log: Path | None = None,
    brief: bool = False,
    records: bool = True,
    guard: StartGuard | None = None,
    environment: Mapping[str, str] | None = None,
) -> Session:
    """A session in which these nodes of a pipeline can run.

    The pipeline's folder goes first on Python's path, so that modules beside the file are found.

    Args:
        plan: The pipeline.
        nodes: The nodes; None for all.
        report: Told what takes long.
        spark_log: Where Spark's own log goes; by default to the pipeline's file in the cache folder.
        brief: The session is over in a minute or two.
        records: Whether an archive of classes is made where there is none.
        guard: What ends the start when nobody needs the session any more.
        environment: Environment variables; None is the process's.

    Raises:
        GemError: GB501, GB502 or GB509 when something is missing, GB511 when the log can't be written.
        StartGivenUp: When the guard ended the start.
    """
    definition = plan.definition
    settings = load_settings(definition.folder, environment)
    chosen = None if nodes is None else list(nodes)
    elsewhere = brings_jars()
    jars = [] if elsewhere else find_jars(plan, chosen, report, environment)
    return open_session(
        SessionRequest(
            app_name=definition.name,
            settings=definition.spark,
            gem_settings=needed_settings(plan, chosen),
            local_settings=local_settings(plan, chosen),
            jars=[jar.path for jar in jars],
            module_folders=[definition.folder],
            defaults=settings.spark,
            spark_log=spark_log,
            log_name="" if elsewhere else definition.name,
            brief=brief,
            class_archive=class_archives(settings),
            records=records,
            guard=guard,
        )
    )


def class_archives(settings: Settings) -> Path | None:
    """The folder of archives of Spark's classes, in the cache; None where the project does without."""
    return cache_folder() / "classes" if settings.class_archive else None


def _gems(plan: Plan, nodes: Iterable[str] | None) -> list[Gem]:
    return [plan.gems[name] for name in (plan.order if nodes is None else nodes)]
