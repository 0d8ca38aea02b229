"""``python -m gem_bundle`` is the command line."""

from gem_bundle.cli import entry

if __name__ == "__main__":
    entry()
