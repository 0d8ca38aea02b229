"""GB020: sections of the pipeline file."""

from __future__ import annotations

from gem_bundle.codes.code import warning

SECTIONS = (
    warning(
        "GB020",
        "a section that no plugin reads",
        why="""
            Some sections of a pipeline file are for plugins: `job` is for the bundler. gem-bundle itself
            does nothing with them; where the plugin isn't installed, or is switched off, what they say has
            no effect and isn't checked.
        """,
        breaks="""
            $ GEM_BUNDLE_DISABLE_PLUGINS=bundler gem-bundle check clicks.yaml
        """,
        keeps="""
            $ gem-bundle check clicks.yaml
        """,
    ),
)
