"""Who holds a lease, where the kernel knows more than whether there is such a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gem_bundler.start.lease_owner import Owner, lives_here

SAYS_WHO_IT_IS = """\
from gem_bundler.start.lease_owner import this_process
print(this_process("ended").as_bytes().decode(), flush=True)
input()
"""


@pytest.mark.programs
def test_a_process_that_nobody_has_waited_for_is_dead() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SAYS_WHO_IT_IS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        owner = Owner.of(process.stdout.readline())
        assert lives_here(owner) is True
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # waits, and leaves it as it is

        assert Path(f"/proc/{process.pid}").exists()
        assert lives_here(owner) is False
