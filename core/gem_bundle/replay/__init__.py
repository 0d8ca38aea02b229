"""Rejected rows that come back in, once each, after the data or the pipeline was mended."""
