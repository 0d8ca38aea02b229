"""Tests of the kit: declared tests, conformance, scaffolds, third-party gems."""
