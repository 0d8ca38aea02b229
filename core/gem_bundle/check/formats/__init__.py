"""How a verdict is written down: for people, for programs, for code scanning and for GitHub's pull requests.

One module a format, imported when that format is asked for.
"""
