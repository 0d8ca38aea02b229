"""What several integration tests share."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.flights import EXAMPLES


@pytest.fixture(scope="session")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All daily files of the flights examples, prepared once."""
    folder = tmp_path_factory.mktemp("feed")
    command = [sys.executable, EXAMPLES / "flights" / "prepare.py", "--to", folder]
    subprocess.run(command, check=True, capture_output=True)
    return folder
