"""What a bundle is: its facts, its manifest, and what of a project goes into it."""
