"""The catalogue of diagnostic codes: what each means, what breaks the rule and what keeps it.

GB0xx file, GB1xx graph, GB2xx options, GB3xx streaming semantics, GB4xx change and checkpoint, GB5xx
environment, GB6xx bundle, GB7xx tests, GB8xx new projects and gems. A code is never used again for
something else.

A check doesn't import it: it is what `gem-bundle explain` reads.
"""

from __future__ import annotations

from gem_bundle.codes.bundle_contents import BUNDLE_CONTENTS
from gem_bundle.codes.bundle_dependencies import BUNDLE_DEPENDENCIES
from gem_bundle.codes.bundle_jobs import BUNDLE_JOBS
from gem_bundle.codes.bundle_start import BUNDLE_START
from gem_bundle.codes.changes import CHANGES
from gem_bundle.codes.code import Code
from gem_bundle.codes.environment import ENVIRONMENT
from gem_bundle.codes.expressions import EXPRESSIONS
from gem_bundle.codes.file import FILE
from gem_bundle.codes.gems import GEMS
from gem_bundle.codes.graph import GRAPH
from gem_bundle.codes.joins import JOINS
from gem_bundle.codes.queries import QUERIES
from gem_bundle.codes.references import REFERENCES
from gem_bundle.codes.scaffolds import SCAFFOLDS
from gem_bundle.codes.sections import SECTIONS
from gem_bundle.codes.semantics import SEMANTICS
from gem_bundle.codes.silence import SILENCE
from gem_bundle.codes.sources import SOURCES
from gem_bundle.codes.state import STATE
from gem_bundle.codes.target_groups import TARGET_GROUPS
from gem_bundle.codes.targets import TARGETS
from gem_bundle.codes.tests import TESTS
from gem_bundle.codes.triggers import TRIGGERS

__all__ = ["CODES", "GROUPS", "Code"]

GROUPS = {
    "GB0": "The file",
    "GB1": "The graph",
    "GB2": "Gems and their options",
    "GB3": "Streaming semantics",
    "GB4": "Changes and checkpoints",
    "GB5": "The environment",
    "GB6": "The bundle",
    "GB7": "Tests",
    "GB8": "New projects and gems",
}
"""What codes are about, by how they begin."""

CODES: dict[str, Code] = {
    code.code: code
    for group in (
        FILE,
        REFERENCES,
        SILENCE,
        SECTIONS,
        GRAPH,
        GEMS,
        EXPRESSIONS,
        QUERIES,
        SEMANTICS,
        JOINS,
        STATE,
        TARGETS,
        SOURCES,
        TRIGGERS,
        TARGET_GROUPS,
        CHANGES,
        ENVIRONMENT,
        BUNDLE_JOBS,
        BUNDLE_CONTENTS,
        BUNDLE_DEPENDENCIES,
        BUNDLE_START,
        TESTS,
        SCAFFOLDS,
    )
    for code in group
}
