"""The code of a gem: no private part of Spark, and nothing heavy when it is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import pytest

from gem_bundle.installed import entry_points
from gem_bundle.plugins import GROUP
from gem_bundle.testing.conformance.guard import PRIVATE, watched
from gem_bundle.testing.conformance.reading import OwnCode
from gem_bundle.testing.conformance.registration import registered
from gem_bundle.testing.conformance.suite import GemConformance, fail, fail_for

HEAVY = ("pyspark", "py4j", "delta", "kafka", "pandas", "numpy", "pyarrow")
"""What importing a gem must not import: engines, and clients of what is outside."""

_PRIVATE_MODULES = ("py4j", "pyspark.java_gateway", "pyspark.rdd", "pyspark.context", "pyspark.SparkContext")
_LOOK = """
import sys
from functools import cache
from importlib import import_module
registration, gem = sys.argv[1:3]
if registration:
    import_module(registration)
    print("registration", *[name for name in ("pydantic", "pyspark") if name in sys.modules])
import_module(gem)
print("gem", *[name for name in sys.argv[3:] if name in sys.modules])
"""


class CodeTests(GemConformance):
    """Public Spark only, so that the gem works over Spark Connect; and imports that cost nothing."""

    def test_no_private_spark_api_in_the_code(self) -> None:
        """The gem's own code names nothing that classic Spark sessions only have."""
        code = OwnCode.of(self.gem)
        problems = [
            f"{use.place} uses `{use.name}`, which is private to Spark or not there over Spark Connect"
            for use in code.attributes
            if use.name in PRIVATE
        ]
        problems += [
            f"{use.place} imports `{use.name}`, which is private to Spark or not there over Spark Connect"
            for use in code.imports
            if any(use.name == name or use.name.startswith(f"{name}.") for name in _PRIVATE_MODULES)
        ]
        fail_for(problems)

    @pytest.mark.spark
    def test_no_private_spark_api_in_use(self) -> None:
        """Nothing private is asked for while the gem runs: by another package, or by a computed name."""
        gem = self.live()
        self.spark  # noqa: B018 (how a session is started is nothing that the gem does)
        with watched(PRIVATE) as uses:
            self._use_once(gem)
        fail_for([f"{use}, which is private to Spark or not there over Spark Connect" for use in uses])

    def test_the_import_is_light(self) -> None:
        """Importing the gem imports no engine and no client; importing its registration next to nothing."""
        loaded = _loaded(self)
        problems = [
            f"importing `{self.gem.__module__}` imports {name}; import it inside the methods that need it, "
            "or under `if TYPE_CHECKING`"
            for name in loaded["gem"]
        ]
        problems += [
            f"importing the module of the entry point imports {name}, which every command then pays for; "
            "register the gem by its name, as 'module:Class'"
            for name in loaded["registration"]
        ]
        fail_for(problems)


def _loaded(suite: GemConformance) -> dict[str, list[str]]:
    """What a new interpreter has loaded after the registration, and after the gem."""
    module = ""
    for entry in registered(suite.gem):
        for point in entry_points(GROUP):
            if point.name == entry.origin.plugin:
                module = point.module
    return _loaded_by(module, suite.gem.__module__)


@cache
def _loaded_by(registration: str, module: str) -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", _LOOK, registration, module, *HEAVY],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    if done.returncode:
        fail(f"`{module}` can't be imported on its own: {done.stderr.strip()[-400:]}")
    found: dict[str, list[str]] = {"registration": [], "gem": []}
    for line in done.stdout.splitlines():
        what, *names = line.split()
        if what in found:
            found[what] = names
    return found
