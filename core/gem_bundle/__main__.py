"""``python -m gem_bundle`` is the command line."""

from gem_bundle.cli import main

if __name__ == "__main__":
    main()
