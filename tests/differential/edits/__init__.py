"""Edits of drawn pipelines: what `gem-bundle plan` says of them, and what becomes of their rows in Spark."""
