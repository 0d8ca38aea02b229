"""Draw docs/demo.svg, the README's picture, out of what `scripts/demo` really prints on a terminal.

.venv/bin/python scripts/picture.py
"""

import os
import pty
import re
import subprocess
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 116
# What moves the cursor or hides it; colours stay in the text.
CONTROL = re.compile(r"\x1b\[(\?\d+[hl]|\d*[AK])|\r|\n")


def main() -> None:
    """Run the demo from its beginning, in a folder of its own, and draw the screen it leaves behind."""
    with TemporaryDirectory() as folder:
        screen = lines_left(typed("scripts/demo", folder))
    console = Console(record=True, width=COLUMNS, file=StringIO())
    console.print(Text.from_ansi("$ scripts/demo\n" + "\n".join(screen).replace(folder, "examples/flights")))
    (ROOT / "docs").mkdir(exist_ok=True)
    console.save_svg(str(ROOT / "docs" / "demo.svg"), title="gem-bundle", theme=MONOKAI)


def typed(*command: str) -> str:
    """What a command prints on a terminal.

    Raises:
        RuntimeError: When it fails.
    """
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "LINES": "50", "TERM": "xterm-256color"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        said = b""
        try:
            while chunk := os.read(ours, 65536):
                said += chunk
        except OSError:
            pass  # on Linux the end of the last process that has the terminal reads as an error
        os.close(ours)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{said.decode()}")
    return said.decode()


def lines_left(said: str) -> list[str]:
    """The lines that stand on the screen after all that was printed, erased and printed over."""
    lines, row, position = [""], 0, 0
    for control in CONTROL.finditer(said):
        lines[row] += said[position : control.start()]
        position = control.end()
        action = control[0]
        if action == "\n":
            row += 1
            if row == len(lines):
                lines.append("")
        elif action.endswith("A"):
            row = max(0, row - int(action[2:-1] or 1))
        elif action.endswith("K"):
            lines[row] = ""
    lines[row] += said[position:]
    return lines


if __name__ == "__main__":
    main()
