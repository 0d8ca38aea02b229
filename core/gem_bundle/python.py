"""User functions: how a gem gets the Python function that a pipeline file names, and what it raised.

Nothing here runs when a pipeline is loaded or checked: a pipeline file is data, and only a run (or a
preview, or `check --engine`) imports the user's modules.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from gem_bundle.contexts import is_over_connect
from gem_bundle.errors import GemError

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_INSTALLED = frozenset({"site-packages", "dist-packages"})


# The modules, by the first parts of their names, that are with this process and not with a server's Python.
_BROUGHT: set[str] = set()

# Targets of a group ask side by side, and Python forgets what it knows of folders without a lock of its own.
_ONE_AT_A_TIME = RLock()


def import_function(reference: str, *, option: str = "function") -> Any:
    """The function or class that ``module:name`` means.

    The module is looked up on Python's path, where the runtime has put the pipeline file's folder
    first. Call it from `apply`, `write_stream` or `write_batch`, never from `check` or `infer`.

    What is found may be used in UDFs and on executors: where those can't import the module, Spark
    sends its code along.

    Args:
        reference: ``module:name``; the name may have dots (``jobs.clean:Rules.apply``).
        option: The option that holds the reference, for the diagnostic.

    Raises:
        GemError: GB506 when the module or the name doesn't exist, GB507 when importing the module
            raises.
    """
    module_name, _, path = reference.partition(":")
    with _ONE_AT_A_TIME:
        module = _import(module_name, option)
    found: Any = module
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            raise GemError(
                "GB506", f"`{module_name}` has no `{path}`", _others(found, part), option
            ) from error
    if not callable(found):
        raise GemError(
            "GB506",
            f"`{reference}` is a {type(found).__name__}, not a function or a class",
            "Name something that can be called.",
            option,
        )
    _send_along(module)
    return found


def bring_along(names: Iterable[str]) -> None:
    """Let modules that this program brought with it be sent to a Spark Connect server, which hasn't got them.

    Elsewhere Spark distributes the archive that they are in, or they are installed.

    Args:
        names: Their import names.
    """
    _BROUGHT.update(name.partition(".")[0] for name in names)


def _import(name: str, option: str) -> ModuleType:
    from importlib import import_module, invalidate_caches

    invalidate_caches()  # the file may be younger than Python's list of the folder
    _forget_namesake(name)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if name == missing or name.startswith(f"{missing}."):
            raise GemError(
                "GB506",
                f"there is no Python module `{name}`",
                f"Put `{name.replace('.', '/')}.py` beside the pipeline file, or install the package it "
                "belongs to.",
                option,
            ) from error
        raise GemError(
            "GB507",
            f"importing `{name}` fails: it needs `{missing}`, which isn't installed",
            f"Install `{missing}` into the environment that runs the pipeline.",
            option,
        ) from error
    except (Exception, SystemExit) as error:
        raise GemError(
            "GB507",
            f"importing `{name}` fails: {user_error(error)}",
            f"Try `python -c 'import {name}'` in the pipeline file's folder.",
            option,
        ) from error


def _others(owner: object, name: str) -> str:
    """What the user may have meant instead of a name that isn't there."""
    from types import ModuleType

    from gem_bundle.diagnostics import suggest

    if isinstance(owner, ModuleType) and owner.__name__ in sys.stdlib_module_names:
        return f"`{owner.__name__}` is a module of Python itself: give yours another name."
    names = getattr(owner, "__dict__", {})
    public = [n for n, value in names.items() if callable(value) and not n.startswith("_")]
    return suggest(name, public, what="names there")


def _forget_namesake(name: str) -> None:
    """Drop a module that another pipeline of this process loaded under the same name.

    Two pipelines in two folders may both have a `jobs.py`, and Python keeps the first it loads. With it
    goes what it imported from its folder, where that has a namesake too or can't be found any more.
    """
    top = name.partition(".")[0]
    loaded = sys.modules.get(top)
    folder = _own_folder(loaded) if loaded is not None else None
    if folder is None or not _has_moved(top):
        return
    near = {n.partition(".")[0] for n, m in list(sys.modules.items()) if _own_folder(m) == folder}
    gone = {n for n in near if _has_moved(n)}
    for other in [n for n in sys.modules if n.partition(".")[0] in gone]:
        del sys.modules[other]


def _has_moved(top: str) -> bool:
    """Whether Python would load a module from elsewhere now."""
    from importlib.machinery import PathFinder

    found = PathFinder.find_spec(top)
    return found is None or found.origin != _origin(sys.modules[top])


def _own_folder(module: ModuleType) -> Path | None:
    """The folder on Python's path that a module of the user's comes from.

    None for modules that every Python of this installation has, and for those in archives, which
    Spark distributes as files (``--py-files``).
    """
    top = sys.modules.get(getattr(module, "__name__", "").partition(".")[0], module)
    origin = _origin(top)
    file = Path(origin)
    if not origin or is_installed(origin) or not file.is_file():
        return None
    file = file.resolve()
    return file.parent.parent if hasattr(top, "__path__") else file.parent


def is_installed(file: str) -> bool:
    """Whether a file belongs to Python or to an installed package, and isn't the user's own.

    Args:
        file: Where a module was, or would be, loaded from.
    """
    return not _INSTALLED.isdisjoint(Path(file).parts) or file.startswith(_standard_library())


@cache
def _standard_library() -> tuple[str, ...]:
    from sysconfig import get_path

    return get_path("stdlib"), get_path("platstdlib")


def _origin(module: ModuleType) -> str:
    """Where a module was loaded from; an empty text when that isn't known."""
    return str(getattr(getattr(module, "__spec__", None), "origin", None) or "")


def _send_along(module: ModuleType) -> None:
    """Make Spark pickle a module's functions with their code where executors can't import it.

    They can when the runtime started the session, with the pipeline's folder on their path. In a
    session that was there before (a notebook, Spark Connect, a test) they can't.
    """
    if "pyspark" not in sys.modules:
        return
    from pyspark import cloudpickle

    for other in _missing_with(module):
        cloudpickle.register_pickle_by_value(other)  # type: ignore[no-untyped-call]


def _missing_with(module: ModuleType) -> list[ModuleType]:
    """The modules that executors can't import either where they can't import this one, itself included."""
    loaded = list(sys.modules.items())
    if module.__name__.partition(".")[0] in _BROUGHT:
        there = _is_over_connect()
        return [found for name, found in loaded if there and name.partition(".")[0] in _BROUGHT]
    folder = _own_folder(module)
    if folder is None or folder in _executor_folders():
        return []
    return [found for _, found in loaded if _own_folder(found) == folder]


def _is_over_connect() -> bool:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        return is_over_connect(SparkSession.active())
    except PySparkException:  # there is no session yet
        return False


def _executor_folders() -> set[Path]:
    """The folders that the session has put on its executors' path."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        path = SparkSession.active().conf.get("spark.executorEnv.PYTHONPATH", "")
    except PySparkException:  # there is no session yet
        return set()
    return {Path(folder).resolve() for folder in (path or "").split(os.pathsep) if folder}


@dataclass(frozen=True, slots=True)
class UserError:
    """What the user's Python code raised, and where.

    Args:
        type: The exception's class, without its module.
        message: What it says; empty when it says nothing.
        file: The file of the user's line that raised it; empty when none of theirs was involved.
        line: That line, from 1; 0 when there is none.
    """

    type: str
    message: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        said = f"{self.type}: {self.message}" if self.message else self.type
        return f"{said} ({self.file}:{self.line})" if self.file else said


def source_file(module: str, folder: Path) -> Path | None:
    """Where the source of a module lies, without importing it or the packages around it.

    Args:
        module: The module's name.
        folder: The folder that is looked through before Python's path: the pipeline file's.

    Returns:
        None where there is no such module, or no source of it.
    """
    names = module.split(".")
    spec: ModuleSpec | None = None
    for number in range(len(names)):
        spec = module_spec(".".join(names[: number + 1]), folder, spec)
        if spec is None:
            return None
    return _source(spec)


def module_spec(name: str, folder: Path, around: ModuleSpec | None = None) -> ModuleSpec | None:
    """Where Python would load a module from, without importing it; None where there is none.

    Args:
        name: The module's whole name.
        folder: The folder that is looked through before Python's path: the pipeline file's.
        around: The package that it is in.
    """
    from importlib.machinery import PathFinder

    # Not by `importlib.util.find_spec`, which imports the packages around a module.
    if around is not None:
        return PathFinder.find_spec(name, list(around.submodule_search_locations or ()))
    found = PathFinder.find_spec(name, [str(folder)])
    for finder in sys.meta_path if found is None else ():
        found = found or finder.find_spec(name, None)
    return found


def source_of(spec: ModuleSpec) -> ast.Module | None:
    """The syntax tree of a module; None where its source isn't there, or can't be read."""
    import ast

    file = _source(spec)
    try:
        return None if file is None else ast.parse(read_module(file))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def read_module(file: Path) -> bytes:
    """The source of a module, which may lie in a zip file that Python imports from.

    Args:
        file: Where it lies, as `source_file` has it.

    Raises:
        OSError: When it can't be read.
    """
    archive = next((folder for folder in file.parents if folder.is_file()), None)
    if archive is None:
        return file.read_bytes()
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(archive) as opened:
            return opened.read(file.relative_to(archive).as_posix())
    except (BadZipFile, KeyError) as error:
        raise OSError(f"{archive} can't be read: {error}") from error


def _source(spec: ModuleSpec | None) -> Path | None:
    from importlib.machinery import SOURCE_SUFFIXES

    if spec is None or spec.origin is None or not spec.origin.endswith(tuple(SOURCE_SUFFIXES)):
        return None
    return Path(spec.origin)


TRACEBACK = "Traceback (most recent call last):"
"""How Python begins to tell where an exception was raised."""

_FRAME = re.compile(r'^\s+File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in .*)?$')
_RAISED = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$")
# What follows an exception's message in Spark's texts, and between chained exceptions in Python's.
_AFTER = re.compile(
    r"^\s*(?:SQLSTATE: \w{5}|=== Streaming Query ===|at [\w.$/]+\(|(?:JVM|Driver) stacktrace:|Caused by: "
    r"|During handling of the above exception|The above exception was the direct cause)"
)
# On executors too, whose Python may be elsewhere.
_LIBRARY = re.compile(r"[/\\](?:(?:pyspark|py4j-[\w.-]+)\.zip|lib[/\\]python3\.\d+)[/\\]")


def user_error(raised: str | BaseException) -> UserError | None:
    """What the user's Python code raised, from Spark's text about it or from the exception itself.

    Spark wraps what a function raised in the driver (foreachBatch) or on executors (UDFs, foreach)
    into a text with Python's traceback inside; where one traceback is inside another, the innermost
    exception is the cause.

    Args:
        raised: The text of a ``StreamingQueryException`` or ``PythonException``, or an exception.

    Returns:
        What was raised, or None when there is no Python traceback in the text.
    """
    if isinstance(raised, BaseException):
        from traceback import TracebackException

        # Python's own text of the exception alone: what caused it stands before it otherwise.
        whole = TracebackException.from_exception(raised)
        whole.__cause__, whole.__context__ = None, None
        return user_error("".join(whole.format())) or UserError(type(raised).__name__, str(raised))
    for block in reversed(raised.split(TRACEBACK)[1:]):
        found = _parsed(block.splitlines())
        if found is not None:
            return found
    return None


def _parsed(lines: list[str]) -> UserError | None:
    """One traceback: its frames, then the line with the exception, then more of its message."""
    place = ("", 0)
    for number, text in enumerate(lines):
        frame = _FRAME.match(text)
        if frame is not None:
            if not _is_library(frame["file"]):
                place = (frame["file"], int(frame["line"]))
            continue
        raised = _RAISED.match(text)
        if raised is not None:
            message = _message(raised["message"] or "", lines[number + 1 :])
            return UserError(raised["type"].rpartition(".")[2], message, *place)
    return None


def _message(first: str, more: list[str]) -> str:
    if first.startswith("["):  # Spark's own: after its sentence comes the plan
        return re.sub(r"\s*SQLSTATE: \w{5}.*$", "", first)
    lines = [first]
    for text in more:
        if _AFTER.match(text):
            break
        lines.append(text)
    return "\n".join(lines).strip()


def _is_library(file: str) -> bool:
    ours = str(Path(__file__).parent)
    return is_installed(file) or file.startswith((ours, "<frozen ")) or bool(_LIBRARY.search(file))
