"""Kubernetes: resources for both Spark operators, and the image."""
