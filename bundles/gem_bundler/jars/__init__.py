"""The jars of a bundle: locked by their hashes, and copied in for clusters without a network."""
