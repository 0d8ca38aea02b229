"""The formats of a plan."""
