"""The command line: one module a command."""

from gem_bundle.cli.main import entry as entry
from gem_bundle.cli.main import main as main
