"""Whether a bundle runs on what it was built for: the versions of Python, Spark and Java."""

from __future__ import annotations

import os
import platform
import re
from typing import TYPE_CHECKING

from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import GemError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundler.bundle.manifest import Manifest


def check_environment(manifest: Manifest) -> Iterator[Diagnostic]:
    """What differs between what a bundle was built for and what is there.

    Another minor version of Python is an error where native parts are in the bundle (`main.py` says so,
    before it imports one), else a warning. Another major version of Spark is an error; another minor one is
    an error where the bundle brings jars, which are made for one, else a warning. Java may be newer.
    spark-submit and a Spark Connect server exclude each other.
    """
    yield from _two_sparks()
    yield from _python(manifest)
    yield from _spark(manifest)
    yield from _java(manifest)


def _two_sparks() -> Iterator[Diagnostic]:
    if os.environ.get("SPARK_REMOTE") and os.environ.get("PYSPARK_GATEWAY_PORT"):
        message = "spark-submit has started a Spark, and SPARK_REMOTE names a Spark Connect server to run on"
        hint = "Unset SPARK_REMOTE; or start main.py with Python alone, which runs on the server."
        yield Diagnostic("GB669", "error", message, hint=hint)


def _python(manifest: Manifest) -> Iterator[Diagnostic]:
    here = platform.python_version()
    if _minor(here) != _minor(manifest.runtime.python):
        message = f"the bundle was built for Python {manifest.runtime.python}, and this is Python {here}"
        hint = "Start it with that version, or build it with one like this."
        yield Diagnostic("GB665", "warning", message, hint=hint)


def _spark(manifest: Manifest) -> Iterator[Diagnostic]:
    from gem_bundle.run.jars import spark_version

    try:
        here = spark_version()
    except GemError as error:
        yield Diagnostic(error.code, "error", error.message, hint=error.hint)
        return
    built = manifest.runtime.spark
    if _minor(here) == _minor(built):
        return
    message = f"the bundle was built for Spark {built}, and this is Spark {here}"
    # Databricks brings the jars of Kafka, Delta and Avro itself.
    brings_jars = bool(manifest.jars) and not os.environ.get("DATABRICKS_RUNTIME_VERSION")
    if _minor(here)[0] != _minor(built)[0] or brings_jars:
        why = ", for which its jars don't work" if brings_jars else ""
        hint = f"Start it on Spark {built}, or build it where this version of pyspark is installed."
        yield Diagnostic("GB664", "error", message + why, hint=hint)
    else:
        hint = "Build it where this version of pyspark is installed: it is then checked for it."
        yield Diagnostic("GB665", "warning", message, hint=hint)


def _java(manifest: Manifest) -> Iterator[Diagnostic]:
    from gem_bundle.run.java import find_java, major_version
    from gem_bundle.run.session import brings_jars

    if os.environ.get("PYSPARK_GATEWAY_PORT"):
        from pyspark import SparkContext

        version = str(SparkContext.getSystemProperty("java.version"))
    elif brings_jars():
        return  # a Spark that runs has a Java that will do
    else:
        try:
            version = find_java().version
        except GemError as error:
            yield Diagnostic(error.code, "error", error.message, hint=error.hint)
            return
    if major_version(version) < manifest.runtime.java:
        message = f"the bundle was built for Java {manifest.runtime.java}, and this is Java {version}"
        hint = f"Start it with Java {manifest.runtime.java} or newer; JAVA_HOME names the one to use."
        yield Diagnostic("GB664", "error", message, hint=hint)


def _minor(version: str) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)
