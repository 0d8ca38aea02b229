"""The one warm session of a test run, and the settings that a test has in it.

A test doesn't start Spark. It sets the SQL settings of its pipeline in the session that is there, and sets
them back when it is done.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle.contexts import is_over_connect
from gem_bundle.diagnostics import NOWHERE, Diagnostic, Place
from gem_bundle.errors import PipelineError
from gem_bundle.run.elsewhere import sees
from gem_bundle.run.environment import (
    class_archives,
    local_settings,
    needed_jars,
    needed_settings,
    resolve_jars,
)
from gem_bundle.run.session import Session, SessionRequest, brings_jars, open_session
from gem_bundle.run.spark_settings import merge_settings, streaming_defaults
from gem_bundle.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pytest
    from pyspark.sql import SparkSession

    from gem_bundle.testing.running.prepared import Prepared

_TIME_ZONE = "spark.sql.session.timeZone"

TEST_SETTINGS: dict[str, object] = {
    # A micro-batch runs a task, and keeps a state store, for each; a test's rows are few.
    "spark.sql.shuffle.partitions": 1,
    # What a test says must not depend on where it runs.
    _TIME_ZONE: "UTC",
    # Each is read anew after every step.
    "spark.sql.streaming.numRecentProgressUpdates": 10,
    # The engine sets it for each query.
    "spark.sql.streaming.pollingDelay": 10,
}
"""What a test's session is set to where neither the pipeline nor the test says otherwise."""


def open_session_for(
    prepared: Iterable[Prepared] = (),
    folder: Path | None = None,
    log: Path | None = None,
    more: Iterable[Needs] = (),
) -> Session:
    """A session for tests: the one that is there, else a small local one.

    Args:
        prepared: Tests that will run in it: their gems' jars and settings are in it from the start.
        folder: The folder of the project, for its settings; by default the current one.
        log: Where Spark's own log goes; by default a file in the cache folder.
        more: What else is needed from the start.

    Raises:
        GemError: When no session can be started: GB501, GB502, GB509, GB511, GB512.
    """
    settings = load_settings(folder or Path.cwd())
    needs = [*(Needs.of(found) for found in prepared), *more]
    elsewhere = brings_jars()
    jars = [] if elsewhere else resolve_jars((jar for need in needs for jar in need.jars), settings)
    merged = merge_settings(("gem", need.settings) for need in needs)
    return open_session(
        SessionRequest(
            app_name="gem-bundle-tests",
            settings={"spark.master": "local[2]"},
            local_settings={"spark.driver.memory": "1g"}
            | {key: value for need in needs for key, value in need.local_settings.items()},
            gem_settings={key: setting.value for key, setting in merged.items()},
            defaults=settings.spark,
            jars=[jar.path for jar in jars],
            spark_log=log,
            log_name="" if elsewhere else "tests",
            brief=True,
            class_archive=class_archives(settings),
        )
    )


def late_session(request: pytest.FixtureRequest) -> Callable[[], SparkSession]:
    """What gives the session that all tests share, and starts it when it is first asked."""

    def session() -> SparkSession:
        spark: SparkSession = request.getfixturevalue("gem_bundle_spark")
        return spark

    return session


class Needs:
    """What the gems that really run in a test need of a session from its start on.

    Args:
        jars: Maven coordinates.
        settings: Spark settings.
        local_settings: Those that make them fast in a local session.
    """

    def __init__(
        self, jars: Iterable[str], settings: Mapping[str, str], local_settings: Mapping[str, str]
    ) -> None:
        self.jars = tuple(jars)
        self.settings = dict(settings)
        self.local_settings = dict(local_settings)

    @classmethod
    def of(cls, prepared: Prepared) -> Needs:
        """The needs of one test: those of its transforms, and of sources that stay as they are."""
        stood_for = {fed.node for fed in prepared.fed.values()}
        names = [n for n in prepared.needed if n not in stood_for and prepared.plan.node(n).kind != "target"]
        plan = prepared.plan
        return cls(needed_jars(plan, names), needed_settings(plan, names), local_settings(plan, names))


@contextmanager
def session_for(
    spark: SparkSession, prepared: Prepared, place: Place = NOWHERE
) -> Iterator[tuple[str, list[Diagnostic]]]:
    """The session as a test needs it, while the block runs.

    The pipeline's folder comes first on Python's path, so that the modules beside it are found.

    Args:
        spark: The session.
        prepared: The test's pipeline.
        place: Where the test stands.

    Yields:
        The session's time zone, and notes about settings that can't be changed in a running session.

    Raises:
        PipelineError: GB708 when tests can't run in such a session.
    """
    _refuse_other_disks(spark, place)
    definition = prepared.definition
    wanted = merge_settings(
        [
            ("default", streaming_defaults(spark.version) | TEST_SETTINGS),
            ("project", load_settings(definition.folder).spark),
            ("gem", Needs.of(prepared).settings),
            ("pipeline", definition.spark),
            ("pipeline", prepared.spark),
        ]
    )
    with ExitStack() as stack:
        stack.enter_context(_first_on_path(str(definition.folder)))
        refused = [key for key, setting in wanted.items() if not _set(spark, key, setting.value, stack)]
        said = [key for key in refused if key.startswith("spark.sql.") and wanted[key].origin != "gem"]
        notes = [_note(key, place) for key in said]
        yield spark.conf.get(_TIME_ZONE) or "UTC", notes


def _refuse_other_disks(spark: SparkSession, place: Place) -> None:
    """Refuse a server that wouldn't see the rows of a test, which are files, nor show its checkpoints."""
    if not is_over_connect(spark):
        return
    folder = Path(tempfile.mkdtemp(prefix="gem-bundle-test-"))
    try:
        if sees(spark, folder):
            return
    finally:
        folder.rmdir()
    message = (
        f"the Spark Connect server doesn't see this machine's folder for temporary files ({folder.parent}), "
        "where the rows of tests lie"
    )
    hint = "Let TMPDIR name a folder that both see, or unset SPARK_REMOTE to run the tests here."
    raise PipelineError([Diagnostic("GB708", "error", message, place=place, hint=hint)])


def _set(spark: SparkSession, key: str, value: str, stack: ExitStack) -> bool:
    """Change a setting until the stack closes; False when it is fixed in this session and differs."""
    from pyspark.errors import PySparkException

    before = spark.conf.get(key, None)
    if before == value:
        return True
    try:
        spark.conf.set(key, value)
    except PySparkException:
        return False
    if before is None:
        stack.callback(spark.conf.unset, key)
    else:
        stack.callback(spark.conf.set, key, before)
    return True


def _note(key: str, place: Place) -> Diagnostic:
    message = f"the setting `{key}` is fixed in the session that the tests share, and doesn't count here"
    hint = "Start that session with it: in the project's settings, or in a `spark` fixture of your own."
    return Diagnostic("GB709", "note", message, place=place, hint=hint)


@contextmanager
def _first_on_path(folder: str) -> Iterator[None]:
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
