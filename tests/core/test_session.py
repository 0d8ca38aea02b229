"""Sessions: started here, found in this process, or given by spark-submit and SPARK_REMOTE.

A JVM belongs to its process for good, so each way of starting one is tried in a process of its own.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import zlib
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.errors import GemError
from gem_bundle.run.jars import spark_home
from gem_bundle.run.java import find_java
from gem_bundle.run.session import SessionRequest, brings_jars, open_session
from tests.samples import a_session_of_its_own
from tests.spark_classes import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

PARTITIONS = "spark.sql.shuffle.partitions"
JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"

PRELUDE = """
import json, os, sys
from pathlib import Path
from gem_bundle.errors import GemError
from gem_bundle.run.session import SessionRequest, brings_jars, open_session

def tell(**facts):
    Path("told.json").write_text(json.dumps(facts))

def failure(request):
    try:
        open_session(request)
    except GemError as error:
        tell(code=error.code, message=error.message, hint=error.hint)
"""


def run(
    folder: Path, script: str, *command: str, **environment: str
) -> tuple[dict[str, Any], subprocess.CompletedProcess[str]]:
    """Run a script in a process of its own; returns what it told, and the process."""
    file = folder / "script.py"
    file.write_text(PRELUDE + script)
    done = subprocess.run(
        [*(command or (sys.executable,)), file],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    told = folder / "told.json"
    assert told.exists(), done.stdout + done.stderr
    return json.loads(told.read_text()), done


OWN = """
from pyspark.sql.functions import udf
from gem_bundle.run.environment import class_archives
from gem_bundle.settings import Settings

request = SessionRequest(
    "own",
    settings={"spark.master": "local[2]", "spark.driver.memory": "1g"},
    defaults={"spark.sql.session.timeZone": "UTC"},
    module_folders=[Path("modules")],
    log_name="own",
    brief=True,
    class_archive=class_archives(Settings()),
)
before = brings_jars()
session = open_session(request)
spark = session.spark
import rules

doubled = udf(rules.double, "long")
rows = [row[0] for row in spark.range(3).select(doubled("id")).collect()]
stream = spark.readStream.name("rate").format("rate-micro-batch").option("rowsPerBatch", 5).load()
query = stream.writeStream.option("checkpointLocation", "checkpoint").trigger(once=True)
query = query.format("parquet").start("out")
query.awaitTermination()
print("to standard error", file=sys.stderr)
again = open_session(SessionRequest("again"))
tell(
    rows=rows,
    written=spark.read.parquet("out").count(),
    python=spark.range(1).select(udf(rules.python, "string")()).first()[0],
    owned=[session.owned, again.owned],
    same=again.spark is spark,
    brings_jars=[before, brings_jars()],
    settings={s.key: [s.value, s.origin] for s in session.settings},
    conf={s.key: spark.conf.get(s.key, None) for s in session.settings},
    ui=spark.sparkContext.uiWebUrl,
    java_home=os.environ["JAVA_HOME"],
)
again.close()
session.close()
"""


@a_session_of_its_own
def test_a_spark_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "rules.py").write_text(
        "import sys\n\ndef double(n):\n    print('from a worker', file=sys.stderr)\n"
        "    return 2 * n\n\ndef python():\n    return sys.executable\n"
    )
    (tmp_path / "logs").mkdir()
    told, done = run(
        tmp_path,
        OWN,
        JAVA_HOME=str(tmp_path / "no-java-here"),
        JDK_JAVA_OPTIONS="-Dsaid.by.the.launcher=1",
        # Nobody can write to a cache folder in the place of which there is a file.
        GEM_BUNDLE_CACHE=str(tmp_path / "modules" / "rules.py"),
        TMPDIR=str(tmp_path / "logs"),
    )
    assert done.returncode == 0
    assert told["rows"] == [0, 2, 4]
    assert told["written"] == 5
    assert told["python"] == sys.executable
    assert (told["owned"], told["same"]) == ([True, False], True)
    assert told["brings_jars"] == [False, True]
    assert told["settings"][PARTITIONS] == ["2", "default"]
    assert told["settings"]["spark.master"] == ["local[2]", "pipeline"]
    assert told["settings"]["spark.sql.session.timeZone"] == ["UTC", "project"]
    assert told["conf"] == {key: value for key, (value, _) in told["settings"].items()}
    assert told["ui"] is None
    assert told["java_home"] == str(tmp_path / "no-java-here")
    # Nothing but the script itself has written to standard error, and nothing is lost.
    assert done.stderr == "to standard error\n"
    log = (tmp_path / "logs" / f"gem-bundle-{os.getuid()}" / "own.log").read_text()
    assert "Picked up JDK_JAVA_OPTIONS" in log
    assert "NativeCodeLoader" in log
    assert "from a worker" in log


ARCHIVED = """
request = SessionRequest(
    "archived",
    settings={"spark.master": "local[2]", "spark.driver.memory": "1g"},
    spark_log=Path("spark.log").absolute(),
    brief=True,
    class_archive=Path("classes").absolute(),
)
print("first", flush=True)
session = open_session(request)
session.spark.range(1).write.format("console").save()
print("last", flush=True)
def read(file):
    # Other programs end whenever they like.
    try:
        return file.read_text()
    except OSError:
        return ""

pids = [pid for pid in os.listdir("/proc") if pid.isdigit()]
children = [pid for pid in pids if f"PPid:\\t{os.getpid()}\\n" in read(Path("/proc", pid, "status"))]
tell(
    options={s.key: s.value for s in session.settings}["spark.driver.defaultJavaOptions"],
    mapped=any(".jsa" in maps and "classes/" in maps for pid in children
               for maps in Path("/proc", pid, "maps").read_text().splitlines()),
)
session.close()
# Its Java is the first one's, and goes on.
open_session(request).close()
"""

PRINTED = ["first", "+---+", "| id|", "+---+", "|  0|", "+---+", "", "last"]


def java_that_writes(folder: Path) -> int | None:
    """The process of the Java that makes an archive in this folder, if it has begun."""
    option = f"-XX:SharedArchiveFile={folder}/".encode()
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        # Other programs end whenever they like.
        with suppress(OSError):
            told = command.read_bytes()
            if option in told and b"-Xshare:dump" in told:
                return int(command.parent.name)
    return None


def wait_for(condition: "Callable[[], bool]") -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@a_session_of_its_own
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_an_archive_of_classes_through_kills_and_damage(tmp_path: Path) -> None:
    folder = tmp_path / "classes"

    def start() -> dict[str, Any]:
        told, done = run(tmp_path, ARCHIVED, JAVA_TOOL_OPTIONS=OPTIONS)
        assert (done.stdout.splitlines(), done.stderr, done.returncode) == (PRINTED, "", 0)
        return told

    # The Java is killed that makes one: nothing is left.
    told = start()
    assert "class+load" in told["options"]
    wait_for(lambda: java_that_writes(folder) is not None)
    os.kill(java_that_writes(folder) or 0, signal.SIGKILL)
    wait_for(lambda: not list(folder.iterdir()))

    # The next one notes its classes again.
    assert "class+load" in start()["options"]
    wait_for(lambda: any(folder.glob("*.json")))

    # And the next one uses it.
    told = start()
    assert "SharedArchiveFile" in told["options"]
    assert told["mapped"]

    # Half an archive that is described as if it were whole makes Java crash, aloud. Then it starts without.
    (place,) = folder.glob("*.json")
    (archive,) = folder.glob("*.jsa")
    archive.chmod(0o644)
    os.truncate(archive, 100_000)
    said = json.loads(place.read_text())
    said.update(size=100_000, crc32=zlib.crc32(archive.read_bytes()))
    place.write_text(json.dumps(said))
    told, done = run(tmp_path, ARCHIVED, JAVA_TOOL_OPTIONS=OPTIONS)
    assert "SharedArchiveFile" not in told["options"]
    assert done.stdout.splitlines()[-len(PRINTED) + 1 :] == PRINTED[1:]
    assert list(folder.iterdir()) == []


def homes_of_java() -> list[Path]:
    """Where this machine has a Java, one of each version: first the one that runs everything else here."""
    ours = find_java()
    found = {ours.version: ours.path.resolve().parents[1]}
    for home in sorted(Path("/usr/lib/jvm").glob("*")):
        with suppress(GemError):
            java = find_java({"JAVA_HOME": str(home), "PATH": ""})
            found.setdefault(java.version, home)
    return list(found.values())


@pytest.mark.sample(0)
def test_each_java_has_an_archive_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "classes"
    homes = homes_of_java()
    if len(homes) == 1:
        pytest.skip("this machine has Java in one version")
    # The same Java at another place may be another one tomorrow.
    homes.append(tmp_path / "copy")
    shutil.copytree(homes[0], homes[-1], symlinks=True)

    def start(home: Path) -> dict[str, Any]:
        told, done = run(tmp_path, ARCHIVED, JAVA_HOME=str(home), JAVA_TOOL_OPTIONS=OPTIONS)
        assert (done.stdout.splitlines(), done.stderr, done.returncode) == (PRINTED, "", 0)
        return told

    for number, home in enumerate(homes, 1):
        assert "class+load" in start(home)["options"], home
        wait_for(lambda number=number: len(list(folder.glob("*.json"))) == number)
    for home in homes:
        told = start(home)
        assert "SharedArchiveFile" in told["options"], home
        assert told["mapped"], home
    assert len(list(folder.glob("*.json"))) == len(list(folder.glob("*.jsa"))) == len(homes)


SUBMITTED = """
request = SessionRequest(
    "submitted",
    settings={"spark.master": "local[4]", "spark.sql.shuffle.partitions": 5},
    gem_settings={"spark.sql.session.timeZone": "UTC"},
    spark_log=Path("spark.log").absolute(),
    class_archive=Path("classes").absolute(),
)
session = open_session(request)
tell(
    owned=session.owned,
    brings_jars=brings_jars(),
    settings={s.key: [s.value, s.origin] for s in session.settings},
    conf={s.key: session.spark.conf.get(s.key, None) for s in session.settings},
    master=session.spark.conf.get("spark.master"),
)
session.close()
"""


@a_session_of_its_own
def test_spark_submit_decides(tmp_path: Path) -> None:
    told, done = run(
        tmp_path,
        SUBMITTED,
        str(spark_home() / "bin" / "spark-submit"),
        *("--driver-java-options", "-XX:TieredStopAtLevel=1", "--driver-memory", "1g"),
        *("--master", "local[1]", "--conf", f"{PARTITIONS}=7"),
        *("--conf", "spark.ui.enabled=false"),
        PYSPARK_PYTHON=sys.executable,
    )
    assert done.returncode == 0, done.stderr
    assert told["owned"]
    assert told["brings_jars"]
    assert told["settings"]["spark.master"] == ["local[1]", "environment"]
    assert told["settings"][PARTITIONS] == ["7", "environment"]
    assert told["settings"]["spark.sql.session.timeZone"] == ["UTC", "gem"]
    assert told["settings"][EVOLUTION] == ["true", "default"]
    assert told["conf"] == {key: value for key, (value, _) in told["settings"].items()}
    # It is started already: nothing is asked of its Java.
    assert JAVA_OPTIONS not in told["settings"]
    assert not (tmp_path / "spark.log").exists()
    assert not (tmp_path / "classes").exists()


def test_a_session_that_is_there_is_used_and_given_back(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gem_bundle.run.session.class_archive", None)  # to ask for one is an error
    partitions = spark.conf.get(PARTITIONS)
    session = open_session(
        SessionRequest(
            "mine",
            settings={
                PARTITIONS: 17,
                "spark.gem_bundle.test": "new",
                "spark.sql.session.timeZone": "UTC",
                "spark.executor.memory": "9g",
                "spark.sql.warehouse.dir": str(tmp_path),
                "spark.master": "local[9]",
            },
            gem_settings={"spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension"},
            jars=[Path("/elsewhere/io.delta_delta-storage-4.4.0.jar")],
            spark_log=tmp_path / "spark.log",
            class_archive=tmp_path / "classes",
        )
    )
    assert session.spark is spark
    assert not session.owned
    assert list(tmp_path.iterdir()) == []
    found = {setting.key: (setting.value, setting.origin) for setting in session.settings}
    assert found[PARTITIONS] == ("17", "pipeline")
    assert found["spark.sql.session.timeZone"] == ("UTC", "environment")
    assert JAVA_OPTIONS not in found
    assert found["spark.jars"][1] == found["spark.sql.extensions"][1] == "environment"
    assert {setting.key for setting in session.refused} == {
        "spark.executor.memory",
        "spark.sql.warehouse.dir",
    }
    assert spark.conf.get(PARTITIONS) == "17"
    assert spark.conf.get("spark.master") == "local[2]"
    session.close()
    assert spark.conf.get(PARTITIONS) == partitions
    assert spark.conf.get("spark.gem_bundle.test", "gone") == "gone"
    assert spark.range(1).count() == 1


def test_jars_that_a_session_lacks_are_reported(spark: "SparkSession") -> None:
    session = open_session(SessionRequest("mine", jars=[Path("/elsewhere/other.jar")]))
    assert [(s.key, s.value) for s in session.refused] == [("spark.jars", "/elsewhere/other.jar")]
    session.close()


def test_modules_beside_the_pipeline_work_in_the_shared_session(
    spark: "SparkSession", user_modules: Path
) -> None:
    from pyspark.sql.functions import udf

    (user_modules / "test_session_rules.py").write_text("def half(n):\n    return n // 2\n")
    import test_session_rules  # type: ignore[import-not-found]

    halved = spark.range(4).select(udf(test_session_rules.half, "long")("id"))
    assert [row[0] for row in halved.collect()] == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("spark.driver.memory", "lots", "heap size: -Xmxlots"),
        ("spark.master", "nowhere", "Master must either be yarn or start with spark, k8s, or local"),
        ("spark.plugins", "no.such.Plugin", "java.lang.ClassNotFoundException: no.such.Plugin"),
    ],
)
def test_settings_that_spark_refuses_are_told_with_its_reason(
    tmp_path: Path, setting: str, value: str, reason: str
) -> None:
    log = tmp_path / "spark.log"
    log.write_text("Error: of an earlier run\n")
    told, done = run(
        tmp_path,
        f"failure(SessionRequest('x', settings={{{setting!r}: {value!r}}}, spark_log=Path({str(log)!r})))",
    )
    assert told["code"] == "GB512"
    assert told["message"].startswith("the Spark session can't start: ")
    assert told["message"].endswith(reason)
    assert str(log) in told["hint"]
    assert done.stderr == ""


def test_no_java_is_told_before_anything_starts(tmp_path: Path) -> None:
    told, done = run(tmp_path, 'failure(SessionRequest("x"))', PATH="", JAVA_HOME="")
    assert told["code"] == "GB501"
    assert done.stderr == ""


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    asked = (
        "failure(SessionRequest('x', spark_log=Path('log/s').absolute(), class_archive=Path('c').absolute()))"
    )
    told, _ = run(tmp_path, asked, SPARK_REMOTE="sc://127.0.0.1:1")
    # The server is where its Java is started.
    assert {file.name for file in tmp_path.iterdir()} == {"script.py", "told.json"}
    assert told["code"] == "GB503"
    assert told["message"].startswith("there is no Spark Connect server at `sc://127.0.0.1:1`: ")
    assert "unset it to run locally" in told["hint"]


def test_spark_connect_without_its_packages_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"sc://127.0.0.1:{server.getsockname()[1]}"
        told, _ = run(
            tmp_path,
            "sys.modules['grpc'] = None\nfailure(SessionRequest('x'))",
            SPARK_REMOTE=url,
        )
    assert told["code"] == "GB509"
    assert told["message"].startswith(f"talking to `{url}` needs packages that aren't installed: ")
    assert told["hint"] == "Install them with `pip install 'gem-bundle[connect-client]'`."


@pytest.mark.parametrize("variable", ["SPARK_REMOTE", "PYSPARK_GATEWAY_PORT", "DATABRICKS_RUNTIME_VERSION"])
def test_environments_that_bring_their_jars(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setattr("gem_bundle.run.session._running", lambda: None)
    assert not brings_jars()
    monkeypatch.setenv(variable, "1")
    assert brings_jars()


def test_a_brief_session_has_room_for_the_code_of_a_long_one(spark: "SparkSession") -> None:
    """The session of the tests is a brief one that lasts for an hour."""
    beans = spark._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()  # type: ignore[union-attr]
    room = sum(bean.getUsage().getMax() for bean in beans if bean.getName().startswith("Code"))
    assert room >= 240 << 20


def test_the_session_that_a_query_worked_with_is_not_taken_for_the_running_one(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """PySpark calls the session active in which a DataFrame was last made, on whatever thread that was."""
    spark.createDataFrame([(1,)], "n int").write.parquet(str(tmp_path / "rows"))

    def look_up(df: "DataFrame", _: int) -> None:
        assert df.sparkSession.createDataFrame([(1,)], "n int").count() == 1

    query = (
        spark.readStream.name("rows")
        .schema("n int")
        .parquet(str(tmp_path / "rows"))
        .writeStream.foreachBatch(look_up)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.conf.set("spark.my.mark", "the run's")
    try:
        with closing(open_session(SessionRequest("next"))) as session:
            assert session.spark.conf.get("spark.my.mark", None) == "the run's"
    finally:
        spark.conf.unset("spark.my.mark")
