"""A gem described by its own declarations: options, semantics, jars and an example.

What `gem-bundle describe` prints, the reference pages and editors' schemas come from here, so that there is
nothing to keep in step by hand.
"""

from gem_bundle.describe.facts import GemDescription as GemDescription
from gem_bundle.describe.facts import OptionDescription as OptionDescription
from gem_bundle.describe.facts import describe_fields as describe_fields
from gem_bundle.describe.facts import describe_gem as describe_gem
from gem_bundle.describe.markdown import example_yaml as example_yaml
from gem_bundle.describe.markdown import markdown as markdown
from gem_bundle.describe.markdown import option_notes as option_notes
from gem_bundle.describe.markdown import options_table as options_table
from gem_bundle.describe.markdown import table as table
from gem_bundle.describe.markdown import value_in_words as value_in_words
from gem_bundle.describe.pipeline import pipeline_schema as pipeline_schema
from gem_bundle.describe.schema import json_schema as json_schema
from gem_bundle.describe.words import semantics_in_words as semantics_in_words
from gem_bundle.describe.words import type_in_words as type_in_words
