"""Databricks: a bundle for its CLI, and a request for its Jobs API."""
