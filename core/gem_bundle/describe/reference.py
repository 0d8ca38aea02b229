"""The former name of `gem_bundle.reference`: what calls it by that goes on working."""

from __future__ import annotations

import sys
from importlib import import_module
from runpy import run_module

# By its name: what it stands for is built on this layer, and nothing here uses it.
if __name__ == "__main__":
    run_module("gem_bundle.reference", run_name="__main__", alter_sys=True)
else:
    sys.modules[__name__] = import_module("gem_bundle.reference")
