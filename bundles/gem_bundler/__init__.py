"""The bundler: turns a checked pipeline into a bundle for a cluster."""
