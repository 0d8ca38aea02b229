"""The server of a run: its numbers, its state and its events over HTTP, for those who watch it."""
