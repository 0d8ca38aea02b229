"""Declared tests: what a `*.test.yaml` file says, and how it is read, run, written and renewed."""
