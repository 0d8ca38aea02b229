"""The scripts that make sure of programs, where several of them start at once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
APT = """\
#!/bin/sh
for word; do case $word in update | install) echo "$word begins" >>"$LOG"; sleep 0.05; echo "$word ends" >>"$LOG" ;; esac; done
"""


@pytest.mark.programs
def test_packages_are_installed_by_one_at_a_time(tmp_path: Path) -> None:
    """Apt refuses whoever comes second."""
    for name, text in {"apt-get": APT, "id": "#!/bin/sh\necho 0\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    log = tmp_path / "log"
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "LOG": str(log), "TMPDIR": str(tmp_path)}
    command = [SCRIPTS / "debian-packages", "something"]
    started = [subprocess.Popen(command, env=environment) for _ in range(3)]

    assert [each.wait() for each in started] == [0, 0, 0]
    one = ["update begins", "update ends", "install begins", "install ends"]
    assert log.read_text().splitlines() == one * 3
