"""The values of tests: what a value in a YAML, JSON or CSV file means to Spark, and how one is written.

A value has one form here, whichever side it comes from, so that two can be compared, and rows can be
given to ``spark.createDataFrame``. By type: arrays and structs are tuples, maps are dicts, timestamps are
in UTC and say so; everything else is as PySpark has it.

In a file a timestamp without a zone is one of the session's time zone, a binary value is its UTF-8 text or
``0x`` and hexadecimal digits, a decimal with more than 15 digits is a text, an interval is written as
``1 hour 30 minutes``, and a map whose keys are no texts or numbers is a list of ``{key: …, value: …}``.
"""

from gem_bundle.testing.values.problems import MisfitError, shortened
from gem_bundle.testing.values.reading import Reader, TextRow, as_single
from gem_bundle.testing.values.showing import Shower
from gem_bundle.testing.values.spark import fields_of_schema, take, take_row, type_of_spark
from gem_bundle.testing.values.zones import zone_of

__all__ = [
    "MisfitError",
    "Reader",
    "Shower",
    "TextRow",
    "as_single",
    "fields_of_schema",
    "shortened",
    "take",
    "take_row",
    "type_of_spark",
    "zone_of",
]
