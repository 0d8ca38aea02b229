"""`gem-bundle check --watch`: a process that is edited under, and asked to end as a user does it."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from gem_bundle.cli import watch
from tests.clock import set_clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATIENCE = 60

TICKS = """\
pipeline: ticks
sources:
  ticks: {gem: rate, options: {rows_per_second: 5}}
targets:
  screen: {gem: console, input: ticks}
"""
UNUSED = TICKS.replace("targets:", "  spare: {gem: rate}\ntargets:")


class Watching:
    """A running watch, and the lines that it prints."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "gem_bundle", "check", "--watch", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def until(self, text: str) -> list[str]:
        """Wait for a line with a text; it and what came before it."""
        lines = []
        while True:
            line = self._lines.get(timeout=PATIENCE)
            assert line is not None, f"it ended without `{text}`: {lines}"
            lines.append(line)
            if text in line:
                return lines

    def end(self) -> tuple[int, list[str]]:
        """Press Ctrl-C; the exit status, and what was printed since."""
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(timeout=PATIENCE)
        self._reader.join()
        lines = []
        while (line := self._lines.get_nowait()) is not None:
            lines.append(line)
        return status, lines

    def close(self) -> None:
        """Leave nothing behind, however the test went."""
        if self.process.poll() is None:
            self.process.kill()
        self._reader.join()
        with self.process:
            pass

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)


@contextmanager
def watching(*arguments: str) -> Iterator[Watching]:
    found = Watching(*arguments)
    try:
        yield found
    finally:
        found.close()


@pytest.mark.programs
def test_a_save_is_checked_and_ctrl_c_ends_it(project: Callable[..., Path]) -> None:
    file = project("ticks.yaml", TICKS)
    with watching("ticks.yaml") as watch:
        assert watch.until("Watching")[0] == "ticks.yaml: ok (2 nodes)"
        file.write_text(TICKS.replace("rows_per", "rows_pre"))
        assert watch.until("1 error") == [
            "ticks.yaml has changed",
            "ticks.yaml:3:32: error[GB204]: `ticks`: `rate` has no option `rows_pre_second`",
            "    Did you mean `rows_per_second`?",
            "ticks.yaml: 1 error",
        ]
        file.write_text(TICKS)
        assert watch.until("ok") == ["ticks.yaml has changed", "ticks.yaml: ok (2 nodes)"]
        assert watch.end() == (0, [""])


@pytest.mark.programs
def test_errors_are_no_reason_for_another_exit_status(project: Callable[..., Path]) -> None:
    project("ticks.yaml", TICKS.replace("rate", "rat"))
    with watching("ticks.yaml") as watch:
        watch.until("Watching")
        assert watch.end() == (0, [""])


@pytest.mark.programs
def test_a_save_by_renaming(project: Callable[..., Path]) -> None:
    file = project("ticks.yaml", TICKS)
    with watching("ticks.yaml") as watch:
        watch.until("Watching")
        other = project(".ticks.yaml.swp", UNUSED)
        other.rename(file)
        lines = watch.until("ok, 1 warning (3 nodes)")
        assert lines[0] == "ticks.yaml has changed"
        assert watch.end() == (0, [""])


@pytest.mark.programs
def test_a_file_that_vanishes_and_comes_back(project: Callable[..., Path]) -> None:
    file = project("ticks.yaml", TICKS)
    with watching("ticks.yaml") as watch:
        watch.until("Watching")
        file.unlink()
        assert watch.until("ticks.yaml: 1 error")[:2] == [
            "ticks.yaml is gone",
            "ticks.yaml: error[GB001]: the file can't be read: No such file or directory",
        ]
        file.write_text(TICKS)
        assert watch.until("ok") == ["ticks.yaml is there", "ticks.yaml: ok (2 nodes)"]
        assert watch.end() == (0, [""])


@pytest.mark.programs
def test_the_settings_are_watched_also_before_they_are_there(project: Callable[..., Path]) -> None:
    file = project("ticks.yaml", UNUSED)
    with watching("ticks.yaml") as watch:
        assert "GB103" in watch.until("Watching")[0]
        settings = project("gem-bundle.toml", '[check]\ndisable = ["GB103"]\n')
        assert watch.until("ok") == ["gem-bundle.toml is there", "ticks.yaml: ok (3 nodes)"]
        settings.write_text("[chek]\n")
        lines = watch.until("1 error")
        assert lines[0] == "gem-bundle.toml has changed"
        assert "GB018" in lines[1]
        settings.unlink()
        assert watch.until("1 warning")[0] == "gem-bundle.toml is gone"
        file.write_text(TICKS)
        watch.until("ok (2 nodes)")
        assert watch.end() == (0, [""])


@pytest.mark.programs
def test_only_what_has_changed_is_checked_again(project: Callable[..., Path]) -> None:
    project("ticks.yaml", TICKS)
    other = project("other.yaml", TICKS)
    with watching("ticks.yaml", "other.yaml") as watch:
        assert watch.until("Watching")[:2] == ["ticks.yaml: ok (2 nodes)", "other.yaml: ok (2 nodes)"]
        other.write_text(UNUSED)
        lines = watch.until("other.yaml: ok, 1 warning (3 nodes)")
        assert not any("ticks.yaml" in line for line in lines)
        assert watch.end() == (0, [""])


@pytest.mark.programs
def test_quiet_shows_errors_only(project: Callable[..., Path]) -> None:
    file = project("ticks.yaml", TICKS.replace("rate", "rat"))
    with watching("--quiet", "ticks.yaml") as watch:
        assert watch.until("Did you mean")[0].startswith("ticks.yaml:3:16: error[GB201]")
        file.write_text(TICKS.replace("console", "consol"))
        assert watch.until("Did you mean")[0].startswith("ticks.yaml:5:17: error[GB201]")
        assert watch.end() == (0, [""])


@pytest.mark.programs
def test_the_settings_that_the_environment_names_are_watched(
    project: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project("ticks.yaml", UNUSED)
    settings = tmp_path / "elsewhere.toml"
    settings.write_text("")
    monkeypatch.setenv("GEM_BUNDLE_SETTINGS", str(settings))
    with watching("ticks.yaml") as watch:
        watch.until("Watching")
        settings.write_text('[check]\ndisable = ["GB103"]\n')
        assert watch.until("ok") == [f"{settings} has changed", "ticks.yaml: ok (3 nodes)"]
        assert watch.end() == (0, [""])


def test_a_save_in_several_steps_is_one_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "ticks.yaml"
    file.write_text(TICKS)
    steps: Iterator[Callable[[], object]] = iter(
        [
            lambda: None,
            file.unlink,
            lambda: file.write_text(""),
            lambda: file.write_text(UNUSED),
            lambda: None,
        ]
    )
    set_clock(monkeypatch, watch, sleep=lambda _: next(steps)())
    seen = watch._stamps([file])

    now = watch._settled([file], seen)

    assert now != seen
    assert file.read_text() == UNUSED
    assert next(steps, None) is None


def test_a_save_of_the_same_size_within_a_moment_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "ticks.yaml"
    file.write_text("a")
    before = watch._stamps([file])
    times = file.stat()
    (tmp_path / "new").write_text("b")
    os.utime(tmp_path / "new", ns=(times.st_atime_ns, times.st_mtime_ns))
    (tmp_path / "new").rename(file)

    assert watch._stamps([file]) != before
