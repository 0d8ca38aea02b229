"""What several tests of bundles share."""

import pytest

from tests.bundles.cluster import bare_python, cluster  # noqa: F401 (fixtures for all tests here)


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the secrets that tests before have found: output would hide their values in any sentence."""
    monkeypatch.setattr("gem_bundle.pipeline.secrets._found", set())
