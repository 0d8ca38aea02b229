"""What it costs a run's micro-batches that it serves, with nobody there and with a thousand clients at once.

Both ways are the same run of many micro-batches, one file each, in the same session. What counts are the micro-batches'
own times, as the run tells them: the start is measured by others.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.benchmarks.engine import pipeline_in, session_for
from tests.benchmarks.timing import clean_environment, in_turn
from tests.benchmarks.worker import ROOT, Worker, answer
from tests.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gem_bundle.run.progress import MicroBatch, Totals
    from tests.benchmarks.timing import Comparison

MODULE: Final = "tests.benchmarks.serving"
MICRO_BATCHES: Final = 16
# Until then each client has asked the server for the first time.
WARM: Final = 4
ROWS: Final = 20_000
CLIENTS: Final = 1000
PIPELINE: Final = """
pipeline: served
spark: {spark.master: 'local[2]', spark.driver.memory: 1g}
sources:
  events:
    gem: file
    options: {format: json, path: events, max_files_per_trigger: 1, schema: "id bigint, team int, amount double"}
targets:
  table: {gem: delta, input: events, trigger: {available_now: true}, options: {path: table}}
"""


def alone(pairs: int, folder: Path) -> Comparison:
    """A run that serves and that nobody asks, against one that doesn't serve."""
    with Worker(MODULE, "serve", folder, ROWS) as worker:
        found = in_turn(lambda: worker.run("served"), lambda: worker.run("alone"), pairs)
    return found.compared(
        "serve",
        f"the micro-batches of `gem-bundle run --serve`, each of {ROWS:,} rows",
        "the same without `--serve`",
        at_most=1.02,
    )


def crowded(pairs: int, folder: Path) -> Comparison:
    """A run whose server a thousand clients ask at once, without a break, against one that nobody asks."""
    with Worker(MODULE, "serve", folder, ROWS) as worker:
        found = in_turn(lambda: worker.run("crowded"), lambda: worker.run("served"), pairs)
    return found.compared(
        "serve-crowd",
        f"the micro-batches of `gem-bundle run --serve` with {CLIENTS:,} clients at once",
        "the same with none",
        at_most=1.05,
    )


def _work(folder: Path, rows: int) -> Callable[[str], float]:
    """Runs that are ``alone``, ``served`` or ``crowded``."""
    from gem_bundle.pipeline.loader import load_file
    from gem_bundle.run.api import run_pipeline
    from gem_bundle.run.options import RunOptions, ServeOptions
    from gem_bundle.run.view import QuietView

    file = pipeline_in(folder, PIPELINE)
    (folder / "events").mkdir()
    text = "".join(f'{{"id": {n}, "team": {n % 7}, "amount": {n}.5}}\n' for n in range(rows))
    for number in range(MICRO_BATCHES):
        (folder / "events" / f"{number}.json").write_text(text)
    session_for(file)

    class Durations(QuietView):
        def __init__(self) -> None:
            self.seconds: list[float] = []

        def progress(self, batch: MicroBatch, totals: Totals) -> None:
            self.seconds.append(batch.duration_ms / 1000)

    def run(way: str) -> float:
        for name in ("table", "checkpoints"):
            shutil.rmtree(folder / name, ignore_errors=True)
        view, port = Durations(), free_port()
        serve = None if way == "alone" else ServeOptions(port=port)
        options = RunOptions(quiet=True, serve=serve)
        with crowd(port) if way == "crowded" else nullcontext():
            report = run_pipeline(lambda load: load_file(file, load), options, view)
        assert report.ok, report.diagnostics
        assert len(view.seconds) == MICRO_BATCHES
        return sum(view.seconds[WARM:])

    return run


@contextmanager
def crowd(port: int) -> Iterator[None]:
    """Clients in a process of their own that gives way to others: what they take isn't what the server costs."""
    command = ["nice", "-n", "19", sys.executable, "-m", MODULE, "crowd", str(port)]
    with subprocess.Popen(
        command, cwd=ROOT, env=clean_environment(), stdout=subprocess.PIPE, text=True
    ) as clients:
        assert clients.stdout is not None
        try:
            clients.stdout.readline()  # they are there
            yield
        finally:
            clients.send_signal(signal.SIGTERM)
            answers = json.loads(clients.stdout.read())
    # Half of them read what comes; those that are refused are told so, or closed at once.
    assert sum(answers.values()) > CLIENTS // 2, answers
    assert answers["200"], answers


async def _client(port: int, number: int, answers: Counter[str]) -> None:
    """Ask, read slowly or not at all, go and come again; a third of them without leave."""
    asked = f"GET /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
    if number % 3 == 0:
        asked = "GET /metrics HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n"
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(asked.encode())
                if number % 2:
                    answers[(await reader.read(1024))[9:12].decode()] += 1
                await asyncio.sleep(1)
            finally:
                writer.close()
        await asyncio.sleep(1)


async def _clients(port: int) -> None:
    answers: Counter[str] = Counter()
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    tasks = [asyncio.create_task(_client(port, number, answers)) for number in range(CLIENTS)]
    print("ready", flush=True)
    await over.wait()
    print(json.dumps(answers), flush=True)
    for task in tasks:
        task.cancel()


def main(work: str, *arguments: str) -> None:
    """Be a worker, which answers every line of standard input with the seconds of one run, or be the crowd."""
    if work == "crowd":
        asyncio.run(_clients(int(arguments[0])))
    else:
        answer(_work(Path(arguments[0]), int(arguments[1])))


if __name__ == "__main__":
    main(*sys.argv[1:])
