"""What proves a bundle: its verification, its signature, its bill of materials, and what changed in it."""
