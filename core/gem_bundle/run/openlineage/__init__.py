"""Telling others, by OpenLineage's events, what a run reads and writes and how it goes."""
