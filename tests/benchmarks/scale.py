"""How much sooner two machines are done than one, where the work is bound by processors.

A machine is a worker of Spark's standalone mode with one core, bound to a processor of its own, and so are its
executor and the Python beside it. Driver, master and broker run on the same processors, which takes from the result.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks.engine import run_in
from tests.benchmarks.timing import Comparison, in_turn
from tests.benchmarks.worker import Worker, answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODULE = "tests.benchmarks.scale"
FILES = 16
# As much work in all, but less of it in rows: the broker that hands them out is on the same processors.
OF_FILES = 1
# Of calls within each other Spark's analyzer casts one an iteration, and gives up after a hundred.
PYTHON_OF_A_TOPIC, SQL_OF_A_TOPIC = 16, 8
PYTHON_ROWS = 400_000
SQL_ROWS = 6_000_000

JOBS = """
def mixed(df):
    from pyspark.sql.functions import udf

    @udf("bigint")
    def mix(number):
        for _ in range({rounds}):
            number = (number * 6364136223846793005 + 1442695040888963407) % 2**63
        return number

    return df.select(mix("id").alias("mixed"))
"""
PYTHON = "work: {gem: python, input: events, options: {function: jobs:mixed}}"
SQL = "work: {{gem: select, input: events, options: {{columns: {{mixed: '{hashes}'}}}}}}"

FROM_FILES = """
  events: {{gem: file, options: {{format: parquet, path: {data}, schema: id bigint}}}}
transforms:
"""
FROM_KAFKA = """
  records: {{gem: kafka, options: {{bootstrap_servers: [{data}], subscribe: [numbers], starting_offsets: earliest}}}}
transforms:
  events: {{gem: select, input: records, options: {{columns: {{id: cast(cast(value as string) as bigint)}}}}}}
"""
PIPELINE = """
pipeline: scale
spark:
  spark.master: {master}
  spark.driver.memory: 1g
  spark.executor.memory: 900m
  spark.sql.files.openCostInBytes: 128m
sources:{source}  {work}
targets:
  nowhere: {{gem: noop, input: work, trigger: {{available_now: true}}}}
"""


def files_python(pairs: int, folder: Path) -> Comparison:
    """A Python UDF over files."""
    return _compared(
        "scale-files-python", "a Python UDF over files", pairs, folder, PYTHON, PYTHON_ROWS, OF_FILES
    )


def files_sql(pairs: int, folder: Path) -> Comparison:
    """Expressions over files."""
    return _compared("scale-files", "expressions over files", pairs, folder, SQL, SQL_ROWS, OF_FILES)


def kafka_python(pairs: int, folder: Path) -> Comparison:
    """A Python UDF over a topic."""
    what, rows = "a Python UDF over a topic", PYTHON_ROWS // PYTHON_OF_A_TOPIC
    with _broker() as broker:
        return _compared("scale-kafka-python", what, pairs, folder, PYTHON, rows, PYTHON_OF_A_TOPIC, broker)


def kafka_sql(pairs: int, folder: Path) -> Comparison:
    """Expressions over a topic."""
    with _broker() as broker:
        rows = SQL_ROWS // SQL_OF_A_TOPIC
        return _compared(
            "scale-kafka", "expressions over a topic", pairs, folder, SQL, rows, SQL_OF_A_TOPIC, broker
        )


@contextmanager
def _broker() -> Iterator[str]:
    from kafka import KafkaAdminClient

    from tests.kafka_broker import start_broker

    with start_broker() as broker:
        with KafkaAdminClient(**broker.client_options()) as admin:
            new = {"num_partitions": FILES, "replication_factor": 1, "configs": {}}
            admin.create_topics({"numbers": new}, wait_for_metadata=True)
        yield broker.bootstrap


def _compared(
    name: str, what: str, pairs: int, folder: Path, work: str, rows: int, effort: int, broker: str = ""
) -> Comparison:
    from tests.bundles.cluster import bare_environment, standalone

    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:

        def workers(count: int) -> Worker:
            place = folder / f"on{count}"
            place.mkdir()
            environment = bare_environment(Path(sys.executable), place / "home")
            master = stack.enter_context(standalone(environment, place, range(count)))
            data = broker or str(folder / "events")
            write(place, master, FROM_KAFKA if broker else FROM_FILES, data, work, effort)
            return stack.enter_context(Worker(MODULE, data, place, rows))

        two, one = workers(2), workers(1)
        found = in_turn(two.run, one.run, pairs)
    return found.compared(
        name, f"{what}, on two machines of one core", "the same on one of them", at_least=1.8
    )


def write(folder: Path, master: str, source: str, data: str, work: str, effort: int = OF_FILES) -> Path:
    """Write the pipeline and its function.

    Args:
        folder: Where to.
        master: The address of the cluster's master.
        source: Where its rows come from, of `FROM_FILES` and `FROM_KAFKA`.
        data: The folder of the files, or the address of the broker.
        work: What is done to them, of `PYTHON` and `SQL`.
        effort: How many times as much is done to each.

    Returns:
        The pipeline file.
    """
    (folder / "jobs.py").write_text(JOBS.format(rounds=200 * effort))
    # Each hash needs the one before.
    hashes = "sha2(" * 12 * effort + "cast(id as string)" + ", 512)" * 12 * effort
    file = folder / "scale.yaml"
    made = work.format(hashes=hashes) if work == SQL else work
    file.write_text(PIPELINE.format(master=master, source=source.format(data=data), work=made))
    return file


def _work(data: str, folder: Path, rows: int) -> Callable[[str], float]:
    """Open the pipeline's session, and see to it that there is something to read."""
    from tests.benchmarks.engine import session_for

    file = folder / "scale.yaml"
    if data.startswith("/"):
        Path(data).mkdir(exist_ok=True)
    spark = session_for(file)
    numbers = spark.range(0, rows, 1, FILES)
    if data.startswith("/"):
        if not any(Path(data).glob("*.parquet")):
            numbers.write.parquet(data, mode="append")
    elif spark.read.format("kafka").options(**_topic(data)).load().limit(1).count() == 0:
        values = numbers.selectExpr("cast(id as string) as value", f"cast(id % {FILES} as int) as partition")
        values.write.format("kafka").options(**{"kafka.bootstrap.servers": data, "topic": "numbers"}).save()
    return lambda _way: run_in(file)


def _topic(broker: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker, "subscribe": "numbers"}


def main(data: str, folder: str, rows: str) -> None:
    """Be a worker: answer every line of standard input with the seconds of one run."""
    answer(_work(data, Path(folder), int(rows)))


if __name__ == "__main__":
    main(*sys.argv[1:])
