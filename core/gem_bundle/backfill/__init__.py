"""A span of event time computed anew, as a batch beside the live run."""
