"""The Python dependencies of a bundle: which they are, where they come from, and how they are packed."""
