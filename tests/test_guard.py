"""A test that starts more than its marks allow fails, whichever way it does it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.guard import MARKS, Guard, started_by

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("event", "arguments", "what"),
    [
        ("subprocess.Popen", ("git", ["git", b"status"], None, None), "a program (git status)"),
        ("subprocess.Popen", ("/bin/sh", "exit 0", None, None), "a program (exit 0)"),
        ("os.fork", (), "a process (os.fork)"),
        ("os.system", (b"true",), "a process (os.system)"),
        ("open", ("/tmp/x/pyvenv.cfg", "w", 0), "a virtual environment (/tmp/x/pyvenv.cfg)"),
        ("socket.bind", (None, ("127.0.0.1", 0)), "a server (on 127.0.0.1)"),
        ("socket.bind", (None, ("", 80)), "a server (on all addresses)"),
        ("socket.connect", (None, ("192.0.2.1", 80)), "a connection to 192.0.2.1"),
        ("socket.connect", (None, ("2001:db8::1", 80, 0, 0)), "a connection to 2001:db8::1"),
        ("socket.getaddrinfo", ("example.org", 80, 0, 0, 0), "a look for the address of example.org"),
    ],
)
def test_what_takes_a_mark(event: str, arguments: tuple[Any, ...], what: str) -> None:
    assert started_by(event, arguments) == what


@pytest.mark.parametrize(
    ("event", "arguments"),
    [
        ("open", ("/tmp/x/pyvenv.cfg", "r", 0)),
        ("open", ("/tmp/x/p.yaml", "w", 0)),
        ("open", (3, "w", 0)),
        ("import", ("subprocess", None, None, None, None)),
        ("socket.bind", (None, "/tmp/a.sock")),
        ("socket.bind", (None, ("::1", 0))),
        ("socket.connect", (None, ("127.0.0.1", 9092))),
        ("socket.connect", (None, ("::1", 9092, 0, 0))),
        ("socket.connect", (None, "/var/run/docker.sock")),
        ("socket.getaddrinfo", ("localhost", 80, 0, 0, 0)),
        ("socket.getaddrinfo", (b"127.0.0.1", 80, 0, 0, 0)),
        ("socket.getaddrinfo", (None, 80, 0, 0, 0)),
    ],
)
def test_what_anybody_may_do(event: str, arguments: tuple[Any, ...]) -> None:
    assert started_by(event, arguments) is None


TESTS = f"""
import subprocess, threading
import pytest

def program():
    subprocess.run([{sys.executable!r}, "-c", ""], check=True)

@pytest.fixture(scope="module")
def shared():
    program()

@pytest.fixture
def own():
    program()

@pytest.mark.programs
def test_marked(shared, own):
    program()

@pytest.mark.spark
def test_spark_starts_programs_too():
    program()

def test_itself():
    program()

def test_by_a_fixture(own):
    pass

def test_by_a_fixture_that_was_there_before(shared):
    pass

def test_in_a_thread():
    thread = threading.Thread(target=program)
    thread.start()
    thread.join()

def test_caught():
    try:
        program()
    except BaseException:
        pass

def test_nothing():
    pass
"""


class Outcomes:
    """What came of the tests of a run of pytest within this one."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.failed: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.rpartition("::")[2]
        if report.failed:
            self.failed[name] = report.longreprtext
        elif report.when == "call":
            self.passed.add(name)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed["collecting"] = report.longreprtext


def run(folder: Path, text: str) -> Outcomes:
    """The tests of a text, under a guard of their own."""
    file = folder / f"test_{folder.name}.py"
    file.write_text(text)
    marks = "\n    ".join(MARKS)
    (folder / "pytest.ini").write_text(f"[pytest]\nmarkers =\n    {marks}\n")
    found = Outcomes()
    quiet = ["-p", "no:terminal", "-p", "no:cacheprovider", "-c", str(folder / "pytest.ini")]
    pytest.main([*quiet, str(file)], [found, Guard()])
    return found


@pytest.mark.programs
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_test_that_starts_what_its_marks_don_t_allow_fails(tmp_path: Path) -> None:
    found = run(tmp_path, TESTS)

    assert found.passed == {
        "test_marked",
        "test_spark_starts_programs_too",
        "test_nothing",
    }
    assert set(found.failed) == {
        "test_itself",
        "test_by_a_fixture",
        "test_by_a_fixture_that_was_there_before",
        "test_in_a_thread",
        "test_caught",
    }
    for name, text in found.failed.items():
        assert "This test starts a program (" in text, name
        assert "it needs one of the marks @pytest.mark.spark, " in text, name
    assert "The fixture 'shared' does it." in found.failed["test_by_a_fixture_that_was_there_before"]


@pytest.mark.programs
def test_a_module_that_starts_something_isn_t_collected(tmp_path: Path) -> None:
    found = run(
        tmp_path, f"import subprocess\nsubprocess.run([{sys.executable!r}, '-c', ''])\ndef test(): pass\n"
    )

    assert found.passed == set()
    assert "This test starts a program (" in found.failed["collecting"]
