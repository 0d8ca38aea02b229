"""Project settings: where they are found, which win, and what is said about wrong ones."""

import subprocess
import sys
from pathlib import Path

import pytest

from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import PipelineError
from gem_bundle.run.environment import class_archives
from gem_bundle.settings import Settings, load_settings, setting_text


def write(folder: Path, text: str, name: str = "gem-bundle.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def problems(start: Path, environment: dict[str, str] | None = None) -> tuple[Diagnostic, ...]:
    with pytest.raises(PipelineError) as caught:
        load_settings(start, environment or {})
    return caught.value.diagnostics


def test_everything_a_file_may_hold(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        """
        [jars]
        packages = ["org.apache.hadoop:hadoop-aws:{hadoop}"]
        exclude = ["software.amazon.awssdk:bundle"]
        overrides = {"org.apache.kafka:kafka-clients" = "3.9.2"}
        repositories = ["https://maven.example.com/releases/"]
        [check]
        disable = ["GB103", "ACME001"]
        spark_version = "4.1"
        [spark]
        "spark.sql.shuffle.partitions" = 8
        spark.sql.session.timeZone = "UTC"
        spark.ui.enabled = true
        spark.sql.extensions = ["a.B", "c.D"]
        [session]
        class_archive = false
        """,
    )
    assert load_settings(tmp_path, {}) == Settings(
        packages=("org.apache.hadoop:hadoop-aws:{hadoop}",),
        exclude=("software.amazon.awssdk:bundle",),
        overrides={"org.apache.kafka:kafka-clients": "3.9.2"},
        repositories=("https://maven.example.com/releases",),
        disabled=frozenset({"GB103", "ACME001"}),
        spark_version="4.1",
        spark={
            "spark.sql.shuffle.partitions": "8",
            "spark.sql.session.timeZone": "UTC",
            "spark.ui.enabled": "true",
            "spark.sql.extensions": "a.B,c.D",
        },
        class_archive=False,
        files=(file,),
    )


def test_a_project_or_a_machine_does_without_an_archive_of_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEM_BUNDLE_CACHE", str(tmp_path / "cache"))
    project, machine = tmp_path / "project", tmp_path / "machine"
    write(project, "session.class_archive = true")
    off = {"GEM_BUNDLE_SETTINGS": str(write(machine, "session.class_archive = false"))}
    assert class_archives(load_settings(tmp_path, {})) == tmp_path / "cache" / "classes"
    assert class_archives(load_settings(project, off)) is None


def test_the_nearest_file_above_the_pipeline_counts(tmp_path: Path) -> None:
    write(tmp_path, 'jars.overrides = {"a:b" = "1"}')
    write(tmp_path / "team", 'jars.overrides = {"a:b" = "2"}')
    pipeline = write(tmp_path / "team" / "clicks", "pipeline: clicks", "pipeline.yaml")
    assert load_settings(pipeline, {}).overrides == {"a:b": "2"}


def test_pyproject_counts_only_with_the_table(tmp_path: Path) -> None:
    write(tmp_path, '[tool.gem-bundle.jars]\noverrides = {"a:b" = "1"}', "pyproject.toml")
    inner = write(tmp_path / "inner", '[project]\nname = "x"', "pyproject.toml").parent
    assert load_settings(inner, {}).files == (tmp_path / "pyproject.toml",)
    assert load_settings(inner, {}).overrides == {"a:b": "1"}


def test_a_file_of_its_own_wins_over_pyproject_beside_it(tmp_path: Path) -> None:
    write(tmp_path, '[tool.gem-bundle.jars]\noverrides = {"a:b" = "1"}', "pyproject.toml")
    write(tmp_path, '[jars]\noverrides = {"a:b" = "2"}')
    assert load_settings(tmp_path, {}).overrides == {"a:b": "2"}


def test_the_values_of_the_named_file_win_and_the_others_stay(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        jars.overrides = {"a:b" = "1", "c:d" = "1"}
        jars.repositories = ["https://one.example"]
        check.disable = ["GB103"]
        spark = {"spark.a" = 1, "spark.b" = 1}
        """,
    )
    named = write(
        tmp_path / "ci",
        """
        jars.overrides = {"a:b" = "2"}
        jars.repositories = []
        spark = {"spark.a" = 2}
        """,
    )
    settings = load_settings(tmp_path, {"GEM_BUNDLE_SETTINGS": str(named)})
    assert settings.overrides == {"a:b": "2", "c:d": "1"}
    assert settings.repositories == ()
    assert settings.disabled == {"GB103"}
    assert settings.spark == {"spark.a": "2", "spark.b": "1"}
    assert settings.files == (tmp_path / "gem-bundle.toml", named)


def test_without_a_file_everything_is_empty(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "not" / "there", {}) == Settings()


@pytest.mark.programs
def test_without_a_file_nothing_is_imported_for_it(tmp_path: Path) -> None:
    write(tmp_path, '[project]\nname = "x"', "pyproject.toml")
    code = (
        "import sys; from pathlib import Path; from gem_bundle.settings import load_settings\n"
        f"load_settings(Path({str(tmp_path)!r}), {{}})\n"
        "print(sorted({'tomllib', 'pydantic', 'gem_bundle.codes'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("text", "line", "column", "message", "hint"),
    [
        ("[jar]\n", 1, 2, "unknown key `jar`", "Did you mean `jars`?"),
        (
            "[jars]\nrepositorys = []\n",
            2,
            1,
            "unknown key `jars.repositorys`",
            "Did you mean `repositories`?",
        ),
        (
            '[jars]\noverrides = {"kafka-clients" = "3.9.2"}\n',
            2,
            15,
            "`jars.overrides.kafka-clients`: write an artifact as `group:artifact`",
            "",
        ),
        (
            '[jars]\npackages = ["org.apache.hadoop:hadoop-aws"]\n',
            2,
            1,
            "`jars.packages.0`: write a jar as `group:artifact:version`",
            "",
        ),
        (
            '[jars]\nexclude = ["bundle"]\n',
            2,
            1,
            "`jars.exclude.0`: write an artifact as `group:artifact`",
            "",
        ),
        (
            '[jars.overrides]\n# "a:b" is old\n"a:b" = "[1,2)"\n',
            3,
            2,
            "`jars.overrides.a:b`: `[1,2)` is not one exact version",
            "",
        ),
        (
            '[jars.overrides]\n"a:b" = 4\n',
            2,
            2,
            "`jars.overrides.a:b`: must be a text",
            "",
        ),
        (
            '[jars]\nrepositories = ["maven.example.com"]\n',
            2,
            1,
            "`jars.repositories.0`: `maven.example.com` is not the URL of a repository "
            "(https://…, http://… or file://…)",
            "",
        ),
        (
            '[jars]\nrepositories = ["https://me:secret@maven.example.com"]\n',
            2,
            1,
            "`jars.repositories.0`: a user name and password in a URL would be shown and are not used",
            "",
        ),
        (
            '[check]\ndisable = ["GB103", "GB999"]\n',
            2,
            1,
            "`check.disable.1`: there is no code GB999; `gem-bundle explain` lists them",
            "",
        ),
        (
            '[check]\ndisable = ["unused"]\n',
            2,
            1,
            "`check.disable.0`: `unused` is not a code; codes look like GB103",
            "",
        ),
        (
            "[spark]\nsql.shuffle.partitions = 8\n",
            2,
            1,
            "`sql.shuffle.partitions`: this is not a Spark setting: their names begin with `spark.`",
            "",
        ),
        (
            "[spark]\nspark.sql.x = 2013-01-01\n",
            2,
            7,
            "`spark.sql.x`: must be a text",
            "",
        ),
        ("spark = 8\n", 1, 1, "`spark`: must be a table", ""),
        (
            "[jars\n",
            1,
            6,
            "this is not TOML: Expected ']' at the end of a table declaration (at line 1, column 6)",
            "",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, text: str, line: int, column: int, message: str, hint: str
) -> None:
    file = write(tmp_path, text)
    [problem] = problems(tmp_path)
    assert (problem.code, problem.severity) == ("GB018", "error")
    assert (problem.file, problem.line, problem.column) == (str(file), line, column)
    assert (problem.message, problem.hint) == (message, hint)


def test_all_problems_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    first = write(tmp_path, "[jar]\n[check]\ndisabled = []\n")
    second = write(tmp_path / "ci", "[spork]\n")
    found = problems(tmp_path, {"GEM_BUNDLE_SETTINGS": str(second)})
    assert [(problem.file, problem.path) for problem in found] == [
        (str(first), ("check", "disabled")),
        (str(first), ("jar",)),
        (str(second), ("spork",)),
    ]


def test_a_named_file_that_is_not_there_says_who_named_it(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere.toml"
    [problem] = problems(tmp_path, {"GEM_BUNDLE_SETTINGS": str(missing)})
    assert problem.message == "the file can't be read: No such file or directory"
    assert problem.file == str(missing)
    assert "GEM_BUNDLE_SETTINGS" in problem.hint


def test_a_file_that_is_not_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "gem-bundle.toml").write_bytes(b"\xff\xfe")
    [problem] = problems(tmp_path)
    assert problem.message.startswith("this is not TOML: ")


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (False, "false"), (8, "8"), (0.5, "0.5"), ("x", "x"), (["a", 1], "a,1")],
)
def test_values_as_spark_takes_them(value: object, text: str) -> None:
    assert setting_text("spark.x", value) == text


def test_values_that_spark_can_not_take() -> None:
    with pytest.raises(ValueError, match=r"`spark\.x` must be a text, a number, true or false"):
        setting_text("spark.x", None)
