"""Gems that are wrong on purpose, and right ones beside them; `tests.kit.test_wrong_gems` runs the suite on each.

pytest doesn't collect these modules by itself: their names don't begin with ``test_``.
"""
