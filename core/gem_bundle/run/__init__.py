"""The runtime: from a checked pipeline to running queries."""
