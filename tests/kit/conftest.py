"""What the kit's tests share: gem-bundle as its users install it."""

from tests.kit.clean import clean_site_packages, gem_bundle_wheel  # noqa: F401 (fixtures)
