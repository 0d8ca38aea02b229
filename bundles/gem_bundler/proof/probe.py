"""What `gem_bundler.proof.verify` runs inside a bundle, where nothing but pyspark is installed."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gem_bundle.errors import PluginError, describe_error
from gem_bundle.plugins import load_registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundler.bundle.inside import Installed

_TASKS = 4


def on_driver(package: str) -> dict[str, Any]:
    """Load everything here, and check the pipelines.

    Args:
        package: The import name of the bundle's package.

    Returns:
        ``problems`` as pairs of what can't be loaded and why, ``waiting`` as the modules that can be imported
        only where a session is, and ``diagnostics`` as dictionaries.
    """
    from gem_bundler.bundle.inside import Installed
    from gem_bundler.bundle.manifest import check_contents

    installed = Installed(package)
    diagnostics = check_contents(installed.manifest, installed.data) + list(_checked(installed))
    return {
        **load_everything(installed),
        "diagnostics": [diagnostic.as_dict() for diagnostic in diagnostics],
    }


def on_executors(package: str) -> dict[str, Any]:
    """Load everything on executors, by a UDF that is found by its name there.

    Args:
        package: The import name of the bundle's package.

    Returns:
        ``problems`` and ``waiting`` as above, and how many ``executors`` took part.
    """
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import lit, udf

    from gem_bundler.bundle.inside import Installed

    builder = SparkSession.builder.appName(f"verify {package}")
    # These executors would find the folders of the driver too; those of a real cluster don't.
    shipped = "./deps" if Installed(package).manifest.deps is not None else ""
    builder = builder.config("spark.executorEnv.PYTHONPATH", shipped)
    spark = builder.getOrCreate()
    try:
        load = udf(load_in_worker)
        rows = spark.range(0, _TASKS, 1, _TASKS).select(load(lit(package)).alias("answer")).collect()
    finally:
        spark.stop()
    answers = [json.loads(row.answer) for row in rows]
    problems = {tuple(problem) for answer in answers for problem in answer["problems"]}
    waiting = {module for answer in answers for module in answer["waiting"]}
    return {
        "problems": sorted(problems),
        "waiting": sorted(waiting),
        "executors": len({answer["folder"] for answer in answers}),
    }


def load_in_worker(package: str) -> str:
    """Load everything in the Python worker of an executor; the answer is JSON."""
    from gem_bundler.bundle.inside import Installed

    return json.dumps({"folder": str(Path.cwd()), **load_everything(Installed(package))})


def load_everything(installed: Installed) -> dict[str, Any]:
    """Load every gem and every module of a bundle.

    Returns:
        ``problems`` as pairs of what can't be loaded and why, and ``waiting`` as the modules that can be
        imported only where a session is.
    """
    problems = list(_gems_not_loaded(installed))
    waiting = []
    for module in installed.manifest.modules:
        try:
            import_module(module)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (a module may raise anything)
            if _needs_session(error):
                waiting.append(module)
            else:
                problems.append((f"the module `{module}`", describe_error(error)))
    return {"problems": problems, "waiting": waiting}


def _gems_not_loaded(installed: Installed) -> Iterator[tuple[str, str]]:
    registry = load_registry()
    for used in installed.manifest.gems:
        what = f"the {used.kind} `{used.name}` of `{used.distribution}`"
        try:
            gem: Any = registry.get(used.kind, used.name).load()  # type: ignore[arg-type]
            gem.options_type.model_json_schema()
        except PluginError as error:
            broken = "; ".join(f"{each.origin}: {each.error}" for each in registry.broken)
            yield what, error.reason + (f" ({broken})" if broken else "")
        except Exception as error:  # noqa: BLE001 (a gem may raise anything when it is used)
            yield what, describe_error(error)


def _needs_session(error: BaseException) -> bool:
    """Whether PySpark raised it because there is no session, as for a UDF whose type is written as text."""
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException) and error.getCondition() == "SESSION_OR_CONTEXT_NOT_EXISTS"


def _checked(installed: Installed) -> Iterator[Diagnostic]:
    from gem_bundle.check.checker import check_definition
    from gem_bundle.pipeline.loader import LoadOptions

    options = LoadOptions(require_parameters=False, skip_env=True, profile=installed.manifest.profile)
    for pipeline in installed.manifest.pipelines:
        yield from check_definition(installed.load(pipeline, Path.cwd(), options)).diagnostics
