"""The proof of a bundle: what it is made of is whole, and it works where nothing but pyspark is installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass, field
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.tags import platform_tags

from gem_bundle.diagnostics import Diagnostic, Place
from gem_bundle.errors import GemError
from gem_bundler.bundle import manifest as manifests
from gem_bundler.bundle.target_platform import building_python

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gem_bundler.bundle.manifest import Manifest
    from gem_bundler.bundle.target_platform import Target
    from gem_bundler.proof.proofs import Proofs

PROVIDED = ("pyspark", "py4j")
_ANSWER = "gem-bundle-probe: "
_LONGEST_SECONDS = 600
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a proof found.

    Args:
        diagnostics: What is wrong, and the warnings of the pipelines' checks.
        done: What was done, in sentences.
        left_out: What was not done, in sentences.
        seconds: How long it took.
    """

    diagnostics: list[Diagnostic] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not any(diagnostic.is_error for diagnostic in self.diagnostics)


def verify(
    bundle: Path,
    *,
    load: bool = True,
    executors: bool = True,
    proofs: Proofs | None = None,
    report: Callable[[str], None] | None = None,
) -> VerifyReport:
    """Prove that a bundle works.

    Its files are compared with their hashes. In an environment that is thrown away and has nothing but
    pyspark, `main.py` prepares the bundle as it does on a cluster; then every gem and every module is loaded,
    and the pipelines are checked from inside the bundle. The same is done on two executors that are
    processes of their own, by a UDF. For a thin bundle pip installs into that environment what it needs.

    Nothing that the bundle's files are is trusted before they are compared, and nothing of a bundle that is
    damaged is executed.

    Args:
        bundle: The bundle's folder.
        load: Load what is in it. Without, its files are only compared with their hashes.
        executors: Start Spark and load everything on executors too. Without, it takes a second or two, and
            what isn't proved is that executors get the bundle; nor, of a thin bundle, that pip can install
            what it needs: this Python's packages stand in.
        proofs: What executors have loaded before, which isn't done again; and where it is remembered.
        report: Told what is being done.

    Raises:
        PipelineError: GB630 or GB631 when it is no bundle that can be read.
        GemError: GB667 when no clean environment can be made.
    """
    from gem_bundle.cli.output import counted

    began = time.monotonic()
    tell = report or (lambda _line: None)
    bundle = bundle.absolute()
    manifest = manifests.read(bundle)
    found = manifests.check_files(bundle, manifest)
    done = [f"compared {len(manifest.files)} files with their hashes"]
    left_out: list[str] = []
    target = manifest.target
    if not load:
        left_out.append(f"loading the gems, and checking what is in the bundle: {_where(target)} does it")
    elif not target.is_here:
        found.append(_not_here(target))
    elif not found:
        # Links in the name of the folder, or blanks, are no matter to Spark's own URLs.
        with tempfile.TemporaryDirectory(prefix="gem-bundle-verify-") as name:
            proof = _Proof(bundle, manifest, Path(name).resolve(), tell, install=executors)
            found += proof.on_driver()
            done.append(
                f"loaded {counted(len(manifest.gems), 'gem')} and "
                f"{counted(len(manifest.modules), 'module')}, and checked "
                f"{counted(len(manifest.pipelines), 'pipeline')}, {proof.where}"
            )
            if executors and proofs is not None and proofs.has(manifest):
                done.append("found that executors have loaded the same dependencies and modules before")
            elif not executors:
                left_out.append(f"loading the gems on executors: {_where(target)} does it")
                if manifest.deps is None:
                    left_out.append(f"installing what it needs with pip: {_where(target)} does it")
            elif not any(diagnostic.is_error for diagnostic in found):
                wrong, count = proof.on_executors()
                found += wrong
                done.append(f"loaded the same on {count} executors of a cluster of two workers")
                if proofs is not None and not wrong:
                    proofs.keep(manifest)
    return VerifyReport(found, done, left_out, round(time.monotonic() - began, 3))


def _where(target: Target) -> str:
    return "`gem-bundle verify`" + ("" if target.is_here else f" under {target}")


def _not_here(target: Target) -> Diagnostic:
    here = f"Python {building_python()} on {next(platform_tags())}"
    return Diagnostic(
        "GB667",
        "error",
        f"the bundle is for {target}, and this is {here}: what is in it can't be loaded here",
        hint="Run `gem-bundle verify` on such a machine, or build for this one with --python and --platform.",
    )


class _Proof:
    """A clean environment, and what is done in it."""

    def __init__(
        self, bundle: Path, manifest: Manifest, folder: Path, tell: Callable[[str], None], *, install: bool
    ) -> None:
        self._bundle = bundle
        self._manifest = manifest
        self._folder = folder
        self._tell = tell
        (folder / "probe.py").write_text(_PROBE, encoding="utf-8")
        if manifest.deps is None and not install:
            self.where = "with the packages that are installed here"
            self._python = Path(sys.executable)
            return
        tell("Making an environment that has only pyspark")
        self._python = bare_python(folder / "python")
        self.where = "where nothing but pyspark is installed"
        if manifest.deps is None:
            self.where = "where only pyspark is installed, and what pip installs for the bundle"
            self._install()

    def on_driver(self) -> list[Diagnostic]:
        """Load everything, and check the pipelines."""
        self._tell("Loading every gem and checking the pipelines from inside the bundle")
        answer = self._ask([str(self._python), "-P", *self._probe("driver")])
        found = [self._not_loaded(each, self.where) for each in answer["problems"]]
        found += [_waiting(module) for module in answer["waiting"]]
        for each in answer["diagnostics"]:
            facts = {key: each[key] for key in ("code", "severity", "message", "node", "hint")}
            place = Place(each["file"], each["line"], each["column"])
            if facts["severity"] != "note":
                found.append(Diagnostic(**facts, place=place))
        return found

    def on_executors(self) -> tuple[list[Diagnostic], int]:
        """Load everything on the executors of a small cluster; tells how many took part."""
        from gem_bundle.run.jars import spark_home
        from gem_bundle.run.java import find_java

        find_java()
        self._tell("Loading every gem on two executors")
        bundle, manifest = self._bundle, self._manifest
        home = _linked(spark_home(), self._folder / "spark")
        command = [
            str(home / "bin" / "spark-submit"),
            *("--master", "local-cluster[2,1,1024]"),
            *("--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=localhost"),
            *("--conf", "spark.driver.bindAddress=127.0.0.1"),
            # Code that runs once isn't worth a compiler's time.
            *("--conf", f"spark.driver.defaultJavaOptions={_JAVA}"),
            *("--conf", f"spark.executor.defaultJavaOptions={_JAVA}"),
            *("--conf", "spark.sql.codegen.wholeStage=false"),
            # Both executors take part, and what fails once fails always.
            *("--conf", "spark.scheduler.minRegisteredResourcesRatio=1.0"),
            *("--conf", "spark.task.maxFailures=1"),
            *("--conf", f"spark.sql.warehouse.dir={self._folder / 'warehouse'}"),
            *("--py-files", (bundle / manifest.archive).as_uri()),
        ]
        if manifest.deps is not None:
            command += ["--archives", f"{(bundle / manifest.deps).as_uri()}#deps"]
            command += ["--conf", "spark.executorEnv.PYTHONPATH=./deps"]
        answer = self._ask([*command, *self._probe("executors")], SPARK_HOME=str(home))
        return [self._not_loaded(each, "on executors") for each in answer["problems"]], answer["executors"]

    def _probe(self, where: str) -> list[str]:
        return [str(self._folder / "probe.py"), str(self._bundle), self._manifest.package, where]

    def _ask(self, command: list[str], **variables: str) -> dict[str, Any]:
        """Run the probe; its answer is a line of JSON."""
        done = subprocess.run(
            command,
            cwd=self._folder,
            env={**self._environment(), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LONGEST_SECONDS,
            check=False,
        )
        for line in done.stdout.splitlines():
            if line.startswith(_ANSWER):
                answer: dict[str, Any] = json.loads(line.removeprefix(_ANSWER))
                return answer
        reason = _reason(done.stderr + done.stdout) or f"it ended with status {done.returncode}"
        return {
            "problems": [["the bundle", reason]],
            "waiting": [],
            "diagnostics": [],
            "executors": 0,
        }

    def _environment(self) -> dict[str, str]:
        """The variables of this process without those that lead Python, Spark or gem-bundle elsewhere."""
        leading = ("PYTHON", "PYSPARK_", "SPARK_", "GEM_BUNDLE_", "VIRTUAL_ENV")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(leading)}
        home = self._folder / "home"
        home.mkdir(exist_ok=True)
        own = {
            "HOME": str(home),
            "PYTHONDONTWRITEBYTECODE": "1",
            "GEM_BUNDLE_CACHE": str(self._folder / "cache"),
            "PYSPARK_PYTHON": str(self._python),
            "PYSPARK_DRIVER_PYTHON": str(self._python),
            "PATH": os.pathsep.join([str(self._python.parent), kept.get("PATH", os.defpath)]),
        }
        return {**kept, **own}

    def _install(self) -> None:
        """Install what a thin bundle needs, as its cluster does."""
        self._tell("Installing what the bundle needs with pip")
        command = [sys.executable, "-m", "pip", "--python", str(self._python), "install", "--quiet"]
        wheel = str(self._bundle / self._manifest.wheel)
        done = subprocess.run(
            [*command, "--disable-pip-version-check", "--only-binary=:all:", wheel],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
            reason = (said or done.stderr.strip().splitlines() or ["pip failed"])[0].removeprefix("ERROR: ")
            raise GemError(
                "GB667",
                f"pip can't install what the thin bundle needs: {reason}",
                "Publish it where pip finds it, or build without --thin.",
            )

    def _not_loaded(self, problem: list[str], where: str) -> Diagnostic:
        what, reason = problem
        hint = "If a package is missing, its distribution has to require it; build again then."
        return Diagnostic("GB666", "error", f"{what} can't be used {where}: {reason}", hint=hint)


def _waiting(module: str) -> Diagnostic:
    return Diagnostic(
        "GB668",
        "warning",
        f"the module `{module}` can be imported only where a session is, and executors have none: what its "
        "UDFs call of it is missing there",
        hint='Write the types of its UDFs as objects, `StringType()` for `"string"`; or make the UDFs in the '
        "function that the pipeline names.",
    )


def _reason(said: str) -> str:
    """The line that says why a program failed, of all that it, Python and Spark said."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"error: |[\w.]*(Error|Exception)\b.*: ", line)]
    return (errors or lines or [""])[-1].removeprefix("error: ")


def bare_python(folder: Path) -> Path:
    """A virtual environment in which nothing is installed but pyspark, whose files are linked to.

    Args:
        folder: Where it is made.

    Returns:
        Its Python.

    Raises:
        GemError: GB667 when pyspark isn't installed here.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    for name in PROVIDED:
        try:
            sources = list(_top_levels(distribution(name)))
        except PackageNotFoundError:
            raise GemError(
                "GB667",
                "a bundle is proved where pyspark is installed, and here it isn't",
                "Install it with `pip install 'gem-bundle[spark]'`.",
            ) from None
        for source in sources:
            (packages / source.name).symlink_to(source, target_is_directory=source.is_dir())
    return folder / "bin" / "python"


def _linked(home: Path, folder: Path) -> Path:
    """A Spark's folder to start it in, whose files are links.

    The workers of a local cluster keep what executors get in ``work`` there, for ever: a copy of the bundle
    for each, which has no business among installed packages. No setting of theirs names another place.
    """
    folder.mkdir()
    for path in home.iterdir():
        if path.name != "work":
            (folder / path.name).symlink_to(path, target_is_directory=path.is_dir())
    return folder


def _top_levels(found: Distribution) -> Iterator[Path]:
    """What a distribution has in site-packages: its packages and its metadata."""
    names = {file.parts[0] for file in found.files or () if len(file.parts) > 1 and file.parts[0] != ".."}
    for name in sorted(names - {"__pycache__"}):
        yield Path(str(found.locate_file(name)))


# Runs where nothing but pyspark is installed, with the bundle prepared by its own main.py.
_PROBE = f"""\
import json
import runpy
import sys

bundle, package, where = sys.argv[1:]
runpy.run_path(bundle + "/main.py")["prepare"]()

from gem_bundler.proof import probe

print({_ANSWER!r} + json.dumps(getattr(probe, "on_" + where)(package)), flush=True)
"""
