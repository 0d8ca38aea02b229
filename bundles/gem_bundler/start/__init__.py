"""What happens where a bundle is started; what the bundle itself calls is `main`."""

from gem_bundler.start.command import main

__all__ = ["main"]
