"""The rows of tests: made up, written down, and compared with those that came."""
