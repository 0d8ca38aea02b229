"""What several tests of bundles share."""

from tests.bundles.cluster import bare_python, cluster  # noqa: F401 (fixtures for all tests here)
