"""The checker: what is wrong with a pipeline, before anything starts."""

from gem_bundle.check.checker import Checked as Checked
from gem_bundle.check.checker import check_definition as check_definition
from gem_bundle.check.checker import check_file as check_file
