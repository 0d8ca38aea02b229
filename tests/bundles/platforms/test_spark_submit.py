"""`submit.sh`: what it hands to spark-submit, from wherever it is called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundler.platforms.spark_submit import definition as spark_submit
from tests.bundles.bundles_for_jobs import (
    ACME,
    PARAMETERS,
    bundle,
    codes,
    full_bundle,
    merged,
    only,
    pipeline,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gem_bundler.bundle.model import Bundle

# It writes down what it was called with, and where.
FAKE = """#!/bin/sh
{ pwd; printf '%s\\n' "$PYSPARK_PYTHON"; } > "$FAKE_LOG"
for word in "$@"; do printf '%s\\0' "$word"; done >> "$FAKE_LOG"
exit "${FAKE_STATUS:-0}"
"""


class Place:
    """A bundle in a folder, and a spark-submit that only writes down how it is called."""

    def __init__(self, folder: Path, built: Bundle, name: str = "bundle") -> None:
        self.folder = folder / name
        self.folder.mkdir(parents=True)
        for file, content in spark_submit.files(built).items():
            (self.folder / file).write_bytes(content)
        self.script = self.folder / "submit.sh"
        self.script.chmod(0o755)
        for part in filter(None, ("main.py", built.archive, built.deps)):
            (self.folder / part).touch()
        if built.vendored:
            (self.folder / "jars").mkdir()
            for jar in built.jars:
                (self.folder / "jars" / jar.file).touch()
        self.elsewhere = folder / "elsewhere"
        self.elsewhere.mkdir()
        self.home = folder / "spark home"
        (self.home / "bin").mkdir(parents=True)
        fake = self.home / "bin" / "spark-submit"
        fake.write_text(FAKE, encoding="utf-8")
        fake.chmod(0o755)
        self.log = folder / "log"

    def start(
        self, *arguments: str, script: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        kept = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        return subprocess.run(
            [str(script or self.script), *arguments],
            cwd=self.elsewhere,
            env={**kept, "SPARK_HOME": str(self.home), "FAKE_LOG": str(self.log), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def words(self, *arguments: str, **environment: str) -> list[str]:
        """The words that spark-submit got."""
        result = self.start(*arguments, script=None, **environment)
        assert (result.returncode, result.stderr) == (0, "")
        folder, _, rest = self.log.read_text(encoding="utf-8").split("\n", 2)
        assert Path(folder) == self.elsewhere
        return rest.split("\0")[:-1]

    def url(self, file: str) -> str:
        return (self.folder / file).as_uri().replace("%2B", "+")  # both are the same


def value(words: Sequence[str], option: str) -> str:
    """The value of an option that is given once."""
    assert words.count(option) == 1, words
    return words[words.index(option) + 1]


def settings(words: Sequence[str]) -> dict[str, str]:
    return dict(words[n + 1].split("=", 1) for n, word in enumerate(words) if word == "--conf")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, bundle())


@pytest.fixture
def full(tmp_path: Path) -> Place:
    return Place(tmp_path, full_bundle())


@pytest.mark.programs
def test_a_plan_needs_no_spark(place: Place) -> None:
    fake = place.home / "bin" / "spark-submit"
    python = fake.rename(place.elsewhere / "python")
    given = ("--target", "table", "--accept", "GB423:clean")
    words = place.words("--plan", "--", *given, PYSPARK_DRIVER_PYTHON=str(python))
    assert words[:2] == [str(place.folder / "main.py"), "--plan"]
    assert words[-4:] == [*given]


@pytest.mark.programs
def test_it_hands_over_the_bundle(place: Place) -> None:
    words = place.words()

    assert value(words, "--py-files") == place.url("clicks_per_minute-1.4.0+g0123456789ab.zip")
    assert value(words, "--archives") == f"{place.url('deps.tar.gz')}#deps"
    assert value(words, "--packages").split(",")[0] == "io.delta:delta-spark_4.2_2.13:4.4.0"
    assert "--jars" not in words
    assert "--master" not in words
    assert settings(words)["spark.executorEnv.PYTHONPATH"] == "./deps"
    assert words[-1] == str(place.folder / "main.py")


@pytest.mark.programs
def test_the_run_of_a_job_with_a_server_answers(tmp_path: Path) -> None:
    words = Place(tmp_path, bundle({"serve": "8080"})).words()
    assert words[-2:] == ["--serve", "8080"]


@pytest.mark.programs
def test_it_says_what_the_job_says(full: Place) -> None:
    words = full.words()
    own = settings(words)

    assert value(words, "--master") == "yarn"
    assert value(words, "--deploy-mode") == "cluster"
    assert value(words, "--driver-memory") == "4g"
    assert value(words, "--executor-cores") == "4"
    assert own["spark.app.name"] == "Clicks"
    assert own["spark.sql.shuffle.partitions"] == "8"
    assert own["spark.dynamicAllocation.maxExecutors"] == "8"
    assert own["spark.yarn.maxAppAttempts"] == "4"
    assert "spark.app.owner" not in own  # it has a reference, and is set at start
    after = words[words.index(str(full.folder / "main.py")) + 1 :]
    assert after == [
        *("--root", "/Volumes/main/streams/clicks"),
        *("-p", "topic=clicks", "-p", 'brokers=["b1:9092", "b2:9092"]'),
    ]


@pytest.mark.programs
def test_options_and_pipeline_options_are_told_apart(place: Place) -> None:
    words = place.words(
        *("--master", "spark://host:7077", "--verbose", "--conf", "a.b=c d"),
        *("--", "--accept", "GB423:clean", "-p", "topic=x y"),
    )

    assert value(words, "--master") == "spark://host:7077"
    assert words.index("--verbose") < words.index(str(place.folder / "main.py"))
    assert settings(words)["a.b"] == "c d"
    assert words[-4:] == ["--accept", "GB423:clean", "-p", "topic=x y"]


@pytest.mark.programs
def test_the_command_line_wins(full: Place) -> None:
    words = full.words(
        "--master=local[2]", "--deploy-mode", "client", "--driver-memory", "1g", "--", "-p", "topic=mine"
    )

    assert value(words, "--master") == "local[2]"
    assert value(words, "--deploy-mode") == "client"
    assert [words[n + 1] for n, word in enumerate(words) if word == "--driver-memory"] == ["4g", "1g"]
    assert "topic=clicks" not in words
    assert words.count("-p") == 2


@pytest.mark.programs
def test_files_are_added_to_the_bundles_own(tmp_path: Path) -> None:
    place = Place(tmp_path, bundle(jars=(ACME,), vendored=True))
    words = place.words(
        *(
            "--jars",
            "mine.jar",
            "--py-files=mine.zip",
            "--archives",
            "mine.tar.gz#mine",
            "--packages",
            "a:b:1",
        )
    )

    assert value(words, "--jars") == f"{place.url('jars/acme-spark-1.2.0.jar')},mine.jar"
    assert value(words, "--py-files").endswith(".zip,mine.zip")
    assert value(words, "--archives") == f"{place.url('deps.tar.gz')}#deps,mine.tar.gz#mine"
    assert value(words, "--packages") == "a:b:1"


@pytest.mark.programs
def test_a_thin_bundle_has_no_archive(tmp_path: Path) -> None:
    words = Place(tmp_path, bundle(deps=None, jars=())).words()

    assert "--archives" not in words
    assert "--packages" not in words
    assert "spark.executorEnv.PYTHONPATH" not in settings(words)


@pytest.mark.programs
@pytest.mark.parametrize("name", ["a b", "50% #1 (new)", "süß", "a'b\"c", "$HOME"])
def test_folders_may_have_any_name(tmp_path: Path, name: str) -> None:
    place = Place(tmp_path, bundle(), name)
    words = place.words()

    # Spark reads these as URLs, in which only what has a meaning there must be written otherwise.
    assert "#" not in value(words, "--py-files")
    assert " " not in value(words, "--archives")
    assert value(words, "--archives").count("#") == 1
    assert words[-1] == str(place.folder / "main.py")


@pytest.mark.programs
@pytest.mark.parametrize("name", ["a,b", "a*", "a?", "a[1]", "a{1}"])
def test_folders_that_spark_would_take_for_something_else_are_refused(tmp_path: Path, name: str) -> None:
    result = Place(tmp_path, bundle(), name).start()

    assert result.returncode == 1
    assert "Rename the folder." in result.stderr


@pytest.mark.programs
def test_it_can_be_called_by_a_link(place: Place) -> None:
    link = place.elsewhere / "start"
    link.symlink_to("../bundle/submit.sh")
    result = place.start(script=link)

    assert result.returncode == 0
    assert str(place.folder / "main.py") in place.log.read_text(encoding="utf-8")


@pytest.mark.programs
@pytest.mark.parametrize(
    ("arguments", "environment", "named"),
    [
        (["--master", "local[2]"], {"SPARK_REMOTE": "sc://spark/;token=secret"}, "SPARK_REMOTE"),
        (["--remote", "sc://spark/;token=secret"], {}, "--remote"),
        (["--remote=sc://spark/;token=secret"], {}, "--remote"),
    ],
)
def test_a_server_is_not_for_spark_submit(
    place: Place, arguments: list[str], environment: dict[str, str], named: str
) -> None:
    result = place.start(*arguments, **environment)

    assert result.returncode == 1
    said = f"error[GB669]: spark-submit starts a Spark, and {named} names another one"
    assert said in result.stderr
    assert f"python3 {place.folder}/main.py" in result.stderr
    assert "secret" not in result.stderr
    assert not place.log.exists()


@pytest.mark.programs
def test_a_plan_may_be_asked_for_beside_a_server(place: Place) -> None:
    python = (place.home / "bin" / "spark-submit").rename(place.elsewhere / "python")
    place.words("--plan", PYSPARK_DRIVER_PYTHON=str(python), SPARK_REMOTE="sc://spark")


@pytest.mark.programs
def test_its_status_is_sparks(place: Place) -> None:
    assert place.start(FAKE_STATUS="7").returncode == 7


@pytest.mark.programs
def test_python_is_what_the_environment_says(place: Place) -> None:
    for given, expected in {"": "python3", "/opt/python": "/opt/python"}.items():
        place.start(PYSPARK_PYTHON=given)
        assert place.log.read_text(encoding="utf-8").split("\n")[1] == expected


@pytest.mark.programs
def test_spark_submit_is_found_on_the_path(place: Place) -> None:
    result = place.start(SPARK_HOME="", PATH=f"{place.home / 'bin'}:{os.environ['PATH']}")

    assert result.returncode == 0
    assert place.log.exists()


@pytest.mark.programs
def test_spark_submit_is_found_in_pyspark(place: Place) -> None:
    site = place.elsewhere / "site"
    (site / "pyspark" / "bin").mkdir(parents=True)
    (site / "pyspark" / "__init__.py").touch()
    shutil.copy(place.home / "bin" / "spark-submit", site / "pyspark" / "bin")
    result = place.start(
        SPARK_HOME="", PATH="/usr/bin:/bin", PYTHONPATH=str(site), PYSPARK_DRIVER_PYTHON=sys.executable
    )

    assert (result.returncode, result.stderr) == (0, "")
    assert place.log.exists()


@pytest.mark.programs
def test_without_spark_it_says_how_to_get_one(place: Place) -> None:
    fake = place.elsewhere / "python"
    fake.write_text("#!/bin/sh\necho\n", encoding="utf-8")
    fake.chmod(0o755)
    result = place.start(SPARK_HOME="", PATH="/usr/bin:/bin", PYSPARK_PYTHON=str(fake))

    assert result.returncode == 1
    assert "there is no spark-submit" in result.stderr
    assert "pip install pyspark" in result.stderr


@pytest.mark.programs
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-p", "topic=x"], "-p is a pipeline option: these come after --"),
        (["--available-now"], "--available-now is a pipeline option"),
        (["--accept", "GB423"], "./submit.sh -- --accept GB423"),
        (["--serve", "8080"], "--serve is a pipeline option"),
        (["topic=x"], "topic=x is not an option"),
        (["--master"], "--master needs a value"),
        (["--master", "spark://h:7077", "--deploy-mode", "cluster"], "no cluster deploy mode for Python"),
        (["--master=local[2]", "--deploy-mode=cluster"], "no cluster deploy mode for Python"),
    ],
)
def test_a_wrong_command_line_is_refused(place: Place, arguments: list[str], complaint: str) -> None:
    result = place.start(*arguments)

    assert result.returncode == 2
    assert complaint in result.stderr
    assert not place.log.exists()


@pytest.mark.programs
@pytest.mark.parametrize("file", ["main.py", "deps.tar.gz", "clicks_per_minute-1.4.0+g0123456789ab.zip"])
def test_a_bundle_that_is_not_whole_is_refused(place: Place, file: str) -> None:
    (place.folder / file).unlink()
    result = place.start()

    assert result.returncode == 1
    assert f"{file} is missing" in result.stderr


@pytest.mark.programs
def test_help_tells_what_can_be_given(full: Place) -> None:
    result = full.start("--help")

    assert (result.returncode, result.stderr) == (0, "")
    assert "topic (string, must be given)  Where the clicks are." in result.stdout
    assert "GEM_BUNDLE_SECRET_KAFKA_PASSWORD" in result.stdout
    assert "30 6 * * MON-FRI /path/to/submit.sh" in result.stdout
    assert not full.log.exists()


HOSTILE = 'it\'s `rm -rf x` $(touch owned) "quoted" \\ END_OF_USAGE'


@pytest.mark.programs
def test_no_text_of_the_pipeline_is_run(tmp_path: Path) -> None:
    own = pipeline(parameters=PARAMETERS, spark=(("spark.note", HOSTILE),))
    built = bundle(
        {"name": HOSTILE, "parameters": {"topic": HOSTILE}},
        description=f"{HOSTILE}\nEND_OF_USAGE\ntouch owned",
        pipelines=(own,),
    )
    place = Place(tmp_path, built)
    words = place.words()

    assert settings(words)["spark.note"] == HOSTILE
    assert settings(words)["spark.app.name"] == HOSTILE
    assert f"topic={HOSTILE}" in words
    assert place.start("--help").returncode == 0
    assert list(place.elsewhere.iterdir()) == []


@pytest.mark.programs
@pytest.mark.parametrize(
    "built", [bundle(), full_bundle(), bundle(deps=None, jars=()), bundle(vendored=True)]
)
def test_shellcheck_has_nothing_to_say(tmp_path: Path, built: Bundle) -> None:
    place = Place(tmp_path, built)
    checker = Path(sys.executable).with_name("shellcheck")
    result = subprocess.run([checker, place.script], capture_output=True, text=True, check=False)

    assert result.stdout + result.stderr == ""


# What spark-submit can't do


@pytest.mark.parametrize(
    ("job", "code", "severity"),
    [
        ({"cluster": {"master": "spark://h:7077", "deploy_mode": "cluster"}}, "GB612", "error"),
        ({"cluster": {"master": "local[2]", "deploy_mode": "cluster"}}, "GB612", "error"),
        ({"cluster": {"workers": 0}}, "GB612", "error"),
        ({"permissions": [{"user": "a", "level": "run"}]}, "GB610", "note"),
        ({"keep_alive": "every hour"}, "GB610", "note"),
        ({"schedule": "@daily"}, "GB616", "warning"),
        ({"parameters": {"topik": "x"}}, "GB608", "error"),
    ],
)
def test_what_spark_submit_cannot_do_is_said(job: dict[str, Any], code: str, severity: str) -> None:
    finding = only(spark_submit.check(bundle(job)), code)

    assert finding.severity == severity
    assert finding.hint


@pytest.mark.parametrize(
    "job", [{}, {"cluster": {"master": "yarn", "deploy_mode": "cluster"}}, merged({}, cluster={"workers": 3})]
)
def test_what_is_fine_is_not_complained_of(job: dict[str, Any]) -> None:
    # Parameters may still be given to submit.sh.
    assert codes(spark_submit.check(bundle(job, pipelines=(pipeline(parameters=PARAMETERS),)))) == []
