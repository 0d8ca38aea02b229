"""What it costs a run's micro-batches that it serves, with nobody there and with a thousand clients at once.

Both ways are the same run of many micro-batches, one file each. What counts are the micro-batches' own times, as the
run tells them: the start is measured by others.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.benchmarks.timing import clean_environment, in_turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.benchmarks.timing import Comparison

GEM_BUNDLE: Final = Path(sys.executable).with_name("gem-bundle")
MICRO_BATCHES: Final = 26
# Until then Java compiles.
WARM: Final = 12
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


class Runs:
    """A project with many files, and runs of it.

    Args:
        folder: Where it is made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "events").mkdir(parents=True)
        rows = "".join(f'{{"id": {n}, "team": {n % 7}, "amount": {n}.5}}\n' for n in range(ROWS))
        for number in range(MICRO_BATCHES):
            (folder / "events" / f"{number}.json").write_text(rows)
        (folder / "served.yaml").write_text(PIPELINE)

    def busy(self, *options: str, crowd: bool = False) -> float:
        """The seconds of a run's micro-batches but the first ones.

        Args:
            options: What the run is given.
            crowd: Whether a thousand clients ask its server meanwhile.
        """
        for name in ("table", "checkpoints"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        command = [GEM_BUNDLE, "run", "served.yaml", "--log-format", "json", *options]
        found: list[float] = []
        said: list[str] = []
        with subprocess.Popen(
            command,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=clean_environment(),
            text=True,
        ) as process:
            assert process.stderr is not None
            for line in process.stderr:
                said.append(line)
                if crowd and line.startswith("Serving at "):
                    with _crowd(line.removeprefix("Serving at http://").strip()):
                        found += _durations(process.stderr, said)
                else:
                    found += _durations([line], [])
        if process.returncode != 0 or len(found) != MICRO_BATCHES:
            raise RuntimeError(f"{command} failed:\n{''.join(said)}")
        return sum(found[WARM:])


def _durations(lines: Iterator[str] | list[str], said: list[str]) -> Iterator[float]:
    for line in lines:
        said.append(line)
        with suppress(json.JSONDecodeError):
            event = json.loads(line)
            if event["event"] == "progress":
                yield event["duration_ms"] / 1000


def alone(pairs: int, folder: Path) -> Comparison:
    """A run that serves and that nobody asks, against one that doesn't serve."""
    runs = Runs(folder)
    found = in_turn(lambda: runs.busy("--serve", "0"), runs.busy, pairs)
    return found.compared(
        "serve",
        f"the micro-batches of `gem-bundle run --serve`, each of {ROWS:,} rows",
        "the same without `--serve`",
        at_most=1.02,
    )


def crowded(pairs: int, folder: Path) -> Comparison:
    """A run whose server a thousand clients ask at once, without a break, against one that nobody asks."""
    runs = Runs(folder)
    found = in_turn(lambda: runs.busy("--serve", "0", crowd=True), lambda: runs.busy("--serve", "0"), pairs)
    return found.compared(
        "serve-crowd",
        f"the micro-batches of `gem-bundle run --serve` with {CLIENTS:,} clients at once",
        "the same with none",
        at_most=1.05,
    )


@contextmanager
def _crowd(address: str) -> Iterator[None]:
    """Clients in a process of their own that gives way to others: what they take isn't what the server costs."""
    command = ["nice", "-n", "19", sys.executable, "-m", "tests.benchmarks.serving", address]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], env=clean_environment()) as clients:
        try:
            yield
        finally:
            clients.terminate()


async def _client(host: str, port: int, number: int) -> None:
    """Ask, read slowly or not at all, go and come again; a third of them without leave."""
    asked = f"GET /api/v1/status HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"
    if number % 3 == 0:
        asked = "GET /metrics HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n"
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(asked.encode())
                if number % 2:
                    await reader.read(1024)
                await asyncio.sleep(1)
            finally:
                writer.close()
        await asyncio.sleep(1)


async def _clients(address: str) -> None:
    host, _, port = address.partition(":")
    await asyncio.gather(*(_client(host, int(port), number) for number in range(CLIENTS)))


if __name__ == "__main__":
    asyncio.run(_clients(sys.argv[1]))
