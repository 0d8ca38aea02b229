"""The rules of a comparison, one family of differences a module."""
