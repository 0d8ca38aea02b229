"""A project's settings: what holds for all its pipelines, on every machine that runs them.

They stand in ``gem-bundle.toml``, or in the table ``[tool.gem-bundle]`` of ``pyproject.toml``, in the
pipeline file's folder or the nearest one above it::

    [jars]
    packages = ["org.apache.hadoop:hadoop-aws:{hadoop}", "software.amazon.awssdk:s3-transfer-manager:2.35.4"]
    exclude = ["software.amazon.awssdk:bundle"]
    repositories = ["https://maven.example.com/releases"]
    overrides = {"org.apache.kafka:kafka-clients" = "3.9.2"}

    [check]
    disable = ["GB103"]
    spark_version = "4.1"

    [spark]
    spark.sql.session.timeZone = "UTC"

    [session]
    class_archive = false

The file that the environment variable ``GEM_BUNDLE_SETTINGS`` names is read too, and its values win.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gem_bundle.diagnostics import Diagnostic, Place, suggest
from gem_bundle.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic import BaseModel

SETTINGS = "GEM_BUNDLE_SETTINGS"
FILE = "gem-bundle.toml"
_PYPROJECT = "pyproject.toml"
_TABLE = "gem-bundle"

PATH_LISTS = frozenset(
    {
        "spark.driver.extraClassPath",
        "spark.executor.extraClassPath",
        "spark.executorEnv.PYTHONPATH",
    }
)
"""The Spark settings that are lists of paths."""

LISTS = PATH_LISTS | {
    "spark.archives",
    "spark.extraListeners",
    "spark.files",
    "spark.jars",
    "spark.jars.packages",
    "spark.plugins",
    "spark.sql.extensions",
    "spark.sql.optimizer.excludedRules",
    "spark.sql.queryExecutionListeners",
    "spark.sql.streaming.streamingQueryListeners",
    "spark.submit.pyFiles",
}
"""The Spark settings that are lists, which are joined where several ask for them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a project; without a settings file everything is empty.

    Args:
        packages: Maven coordinates of jars that every session has besides those of its gems.
        exclude: Artifacts that are left out wherever they come in, as ``group:artifact``.
        overrides: Versions of jars to use instead, by ``group:artifact``.
        repositories: URLs of further Maven repositories, asked before Maven Central.
        disabled: Codes of warnings and notes that are not reported.
        spark_version: The Spark version that pipelines are checked for; None for the installed one.
        spark: Spark settings that every pipeline of the project starts with.
        class_archive: Whether a Spark that is started here may use and make an archive of its classes.
        files: The files they were read from, the one that wins last.
    """

    packages: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    overrides: Mapping[str, str] = field(default_factory=dict)
    repositories: tuple[str, ...] = ()
    disabled: frozenset[str] = frozenset()
    spark_version: str | None = None
    spark: Mapping[str, str] = field(default_factory=dict)
    class_archive: bool = True
    files: tuple[Path, ...] = ()


def load_settings(start: Path, environment: Mapping[str, str] | None = None) -> Settings:
    """The settings that hold for a pipeline.

    Args:
        start: The pipeline file, or its folder; settings are looked up from there upwards.
        environment: Where ``GEM_BUNDLE_SETTINGS`` is looked up; by default the process's own.

    Raises:
        PipelineError: With everything that is wrong with the files, as GB018.
    """
    if environment is None:
        environment = os.environ
    chosen = environment.get(SETTINGS)
    files = [*_nearest(start), *([Path(chosen).expanduser()] if chosen else [])]
    if not files:
        return Settings()
    problems: list[Diagnostic] = []
    tables = [_read(file, problems, explicit=bool(chosen) and file is files[-1]) for file in files]
    if problems:
        raise PipelineError(problems)
    return Settings(
        packages=_last(tables, "jars", "packages"),
        exclude=_last(tables, "jars", "exclude"),
        overrides={k: v for table in tables for k, v in table["jars"]["overrides"].items()},
        repositories=_last(tables, "jars", "repositories"),
        disabled=frozenset(_last(tables, "check", "disable")),
        spark_version=next((v for t in reversed(tables) if (v := t["check"]["spark_version"])), None),
        spark={k: v for table in tables for k, v in table["spark"].items()},
        class_archive=next(
            (v for t in reversed(tables) if (v := t["session"]["class_archive"]) is not None), True
        ),
        files=tuple(dict.fromkeys(file.absolute() for file in files)),
    )


def settings_file(start: Path) -> Path | None:
    """The settings file of the project that a folder is in: of the nearest folder that has one.

    Args:
        start: The folder, or a file in it.
    """
    return next(_nearest(start), None)


def _nearest(start: Path) -> Iterator[Path]:
    start = start.absolute()
    for folder in (start, *start.parents):
        own, shared = folder / FILE, folder / _PYPROJECT
        if own.is_file():
            yield own
            return
        # Looking for the words is a hundred times cheaper than importing the parser.
        if shared.is_file() and f"tool.{_TABLE}".encode() in shared.read_bytes():
            yield shared
            return


def _last(tables: Sequence[Mapping[str, Any]], section: str, key: str) -> tuple[str, ...]:
    """A list's value in the last file that has one."""
    given = [table[section][key] for table in tables if table[section][key] is not None]
    return tuple(given[-1]) if given else ()


def _read(file: Path, problems: list[Diagnostic], *, explicit: bool) -> dict[str, Any]:
    """One file's settings as `settings_model` dumps them; what is wrong goes to the problems."""
    import tomllib

    from pydantic import ValidationError

    try:
        text = file.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except OSError as error:
        hint = f"It is named by {SETTINGS}; name another one or unset it." if explicit else ""
        problems.append(_problem(f"the file can't be read: {error.strerror}", Place(str(file)), hint))
        return {}
    except ValueError as error:  # not TOML, or not UTF-8
        problems.append(_problem(f"this is not TOML: {error}", _place_of_error(file, str(error))))
        return {}
    if file.name == _PYPROJECT:
        table = table.get("tool", {}).get(_TABLE, {})
    try:
        return settings_model().model_validate(table).model_dump()
    except ValidationError as error:
        for found in error.errors():
            path = tuple(str(part) for part in found["loc"] if part != "[key]")
            problems.append(_explain(found["type"], found["msg"], path, _place(file, text, path)))
        return {}


def _problem(message: str, place: Place, hint: str = "", path: tuple[str, ...] = ()) -> Diagnostic:
    return Diagnostic("GB018", "error", message, path=path, place=place, hint=hint)


def _explain(kind: str, sentence: str, path: tuple[str, ...], place: Place) -> Diagnostic:
    """What pydantic found, in the words of the other diagnostics."""
    # A Spark setting's own name tells where it stands.
    name = ".".join(path[1:] if path[0] == "spark" and len(path) > 1 else path)
    if kind == "extra_forbidden":
        known = settings_model().model_fields
        for part in path[:-1]:
            known = getattr(known[part].annotation, "model_fields", {})
        return _problem(f"unknown key `{name}`", place, suggest(path[-1], known, what="keys"), path)
    what = re.sub("^Input should be ", "must be ", sentence.removeprefix("Value error, "))
    what = what.replace("a valid dictionary", "a table").replace("a valid string", "a text")
    return _problem(f"`{name}`: {what}", place, path=path)


def _place_of_error(file: Path, message: str) -> Place:
    match = re.search(r"line (\d+), column (\d+)", message)
    return Place(str(file), *(int(n) for n in match.groups())) if match else Place(str(file))


def _place(file: Path, text: str, path: tuple[str, ...]) -> Place:
    """Where a key stands; the parser doesn't tell, so its name is looked for, innermost first."""
    for key in reversed(path):
        # A Spark setting may stand in a table of its first part: [spark] sql.shuffle.partitions = 8.
        name = re.escape(key.removeprefix("spark."))
        pattern = rf"""^[^#\n]*?(?<![\w-])({name})["']?[ \t]*[=\].]"""
        match = None if key.isdigit() else re.search(pattern, text, re.MULTILINE)
        if match:
            start = match.start(1)
            line_start = text.rfind("\n", 0, start) + 1
            return Place(str(file), text.count("\n", 0, start) + 1, start - line_start + 1)
    return Place(str(file))


@cache
def settings_model() -> type[BaseModel]:
    """What a settings file may hold. Made when it is needed: models cost milliseconds."""
    from typing import Annotated

    from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

    class Table(BaseModel):
        model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    class Jars(Table):
        packages: list[Annotated[str, AfterValidator(_check_coordinate)]] | None = Field(
            None,
            description="Jars that every session has besides those of its gems, as `group:artifact:version`: "
            "those of an object store, for instance. `{hadoop}` stands for the version of Spark's Hadoop; "
            "`{spark}`, `{spark_minor}` and `{scala}` are known too.",
            examples=[["org.apache.hadoop:hadoop-aws:{hadoop}"]],
        )
        exclude: list[Annotated[str, AfterValidator(_check_artifact)]] | None = Field(
            None,
            description="Artifacts that are left out wherever they come in, as `group:artifact`.",
            examples=[["software.amazon.awssdk:bundle"]],
        )
        overrides: dict[
            Annotated[str, AfterValidator(_check_artifact)],
            Annotated[str, AfterValidator(_check_version)],
        ] = Field(default_factory=dict, description="Versions of jars to use instead, by `group:artifact`.")
        repositories: list[Annotated[str, AfterValidator(_check_url)]] | None = Field(
            None, description="URLs of further Maven repositories, asked before Maven Central."
        )

    class Check(Table):
        disable: list[Annotated[str, AfterValidator(_check_code)]] | None = Field(
            None, description="Codes of warnings and notes that are not reported.", examples=[["GB103"]]
        )
        spark_version: Annotated[str, AfterValidator(_check_spark_version)] | None = Field(
            None,
            description="The Spark version that pipelines are checked for whose `job` names no runtime; by "
            "default the installed one.",
            examples=["4.1"],
        )

    class Session(Table):
        class_archive: bool | None = Field(
            None,
            description="Whether a Spark that is started here may use an archive of its classes, which the "
            "first run leaves in the cache: it starts in less time. By default it may.",
        )

    class Root(Table):
        jars: Jars = Field(default_factory=Jars, description="Where jars come from, and which.")
        check: Check = Field(default_factory=Check, description="How pipelines are checked.")
        spark: Annotated[
            dict[Annotated[str, AfterValidator(_check_spark_name)], str], BeforeValidator(_flatten)
        ] = Field(
            default_factory=dict, description="Spark settings that every pipeline of the project starts with."
        )
        session: Session = Field(default_factory=Session, description="How a Spark of one's own starts.")

    return Root


def _check_coordinate(coordinate: str) -> str:
    if not re.fullmatch(r"[\w.-]+(:[\w.{}-]+){2}", coordinate):
        raise ValueError("write a jar as `group:artifact:version`")
    return coordinate


def _check_artifact(name: str) -> str:
    if not re.fullmatch(r"[\w.-]+:[\w.-]+", name):
        raise ValueError("write an artifact as `group:artifact`")
    return name


def _check_version(version: str) -> str:
    if not re.fullmatch(r"[\w.-]+", version):
        raise ValueError(f"`{version}` is not one exact version")
    return version


def _check_url(url: str) -> str:
    from urllib.parse import urlsplit

    if "@" in urlsplit(url).netloc:
        raise ValueError("a user name and password in a URL would be shown and are not used")
    if not re.match(r"(https?|file)://", url):
        raise ValueError(f"`{url}` is not the URL of a repository (https://…, http://… or file://…)")
    return url.rstrip("/")


def _check_code(code: str) -> str:
    from gem_bundle.codes import CODES

    if not re.fullmatch(r"[A-Z]+\d+", code):
        raise ValueError(f"`{code}` is not a code; codes look like GB103")
    if code.startswith("GB") and code not in CODES:
        raise ValueError(f"there is no code {code}; `gem-bundle explain` lists them")
    return code


def _check_spark_version(version: str) -> str:
    if not re.fullmatch(r"\d+\.\d+(\.\w+)*", version):
        raise ValueError("write a version of Spark such as `4.1`")
    return version


def _check_spark_name(name: str) -> str:
    if not name.startswith("spark."):
        raise ValueError("this is not a Spark setting: their names begin with `spark.`")
    return name


def _flatten(table: object) -> object:
    """Spark settings by their dotted names, which TOML reads as nested tables unless quoted."""
    if not isinstance(table, dict):
        return table
    found: dict[str, object] = {}

    def walk(prefix: str, value: object) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(f"{prefix}.{key}" if prefix else key, inner)
        elif isinstance(value, bool | int | float | list):
            found[prefix] = setting_text(prefix, value)
        else:
            found[prefix] = value

    walk("", table)
    return found


def setting_text(name: str, value: object) -> str:
    """A Spark setting's value as Spark takes it: booleans in lower case, lists with commas.

    Raises:
        ValueError: When the value is something else, a date for example.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(setting_text(name, item) for item in value)
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError(f"`{name}` must be a text, a number, true or false")
