"""Wheels: how one is read and made, and the one that is the bundle."""
