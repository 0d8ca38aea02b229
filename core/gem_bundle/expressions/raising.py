"""What ends a query for some rows in ANSI mode, and what Spark has in its place: measured on Spark 4.2."""

from __future__ import annotations

from gem_bundle.expressions.functions import words

# Operators and functions that are null where the other one raises.
TRIED = {
    "+": "try_add",
    "-": "try_subtract",
    "*": "try_multiply",
    "/": "try_divide",
    "%": "try_mod",
}
RENAMED = {
    name: f"try_{name}"
    for name in words(
        """
        aes_decrypt element_at make_interval make_timestamp make_timestamp_ltz make_timestamp_ntz mod
        parse_json parse_url to_binary to_number to_time to_timestamp url_decode validate_utf8 variant_get
        """
    )
}
# Their arguments become one type.
TOGETHER = words("coalesce ifnull nullif nvl")
# What Spark makes of a text that stands for an argument of a function, by its position.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        words(
            """
            abs acos asin atan bround cbrt ceil ceiling cos degrees exp expm1 floor ln log10 log1p log2
            radians rint round sign signum sin sqrt tan
            """
        ),
        ("double",),
    ),
    **dict.fromkeys(words("atan2 hypot log mod pmod pow power"), ("double", "double")),
    **dict.fromkeys(words("bin char chr from_unixtime"), ("bigint",)),
    **dict.fromkeys(
        words(
            """
            add_months date_add date_sub dateadd day dayname dayofmonth dayofweek dayofyear last_day month
            monthname next_day quarter trunc unix_date weekday weekofyear year
            """
        ),
        ("date",),
    ),
    **dict.fromkeys(words("date_diff datediff"), ("date", "date")),
    **dict.fromkeys(
        words(
            """
            date_format from_utc_timestamp hour minute second to_utc_timestamp unix_micros unix_millis
            unix_seconds
            """
        ),
        ("timestamp",),
    ),
    "date_trunc": ("", "timestamp"),
    "months_between": ("timestamp", "timestamp"),
    "if": ("boolean",),
}
_KEYS = "Spark has no `try_` for it: leave a key out that is there before, or compare the arrays."
# Those without one, and what to write.
RAISING = {
    "assert_true": "Write the condition itself.",
    "elt": "Use `try_element_at(array(…), n)`.",
    "from_avro": "Give it the option `map('mode', 'PERMISSIVE')`, or use the gem `from_avro`.",
    "from_protobuf": "Give it the option `map('mode', 'PERMISSIVE')`.",
    "make_date": "Use `cast(try_make_timestamp(…, 0, 0, 0) as date)`.",
    "make_dt_interval": "Use `try_make_interval`.",
    "make_time": "Use `try_to_time`, of a text.",
    "make_ym_interval": "Use `try_make_interval`.",
    "map_concat": _KEYS,
    "map": _KEYS,
    "map_from_arrays": _KEYS,
    "map_from_entries": _KEYS,
    "raise_error": "Write `false`, or null, where the row breaks the rule.",
    "sequence": "Compare its bounds first, in a rule of its own.",
    "str_to_map": _KEYS,
    "timestamp_micros": "Ask first, in a rule of its own, whether the number is between two others.",
    "timestamp_millis": "Ask first, in a rule of its own, whether the number is between two others.",
    "timestamp_seconds": "Ask first, in a rule of its own, whether the number is between two others.",
    "transform_keys": _KEYS,
    **dict.fromkeys(
        words("xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short"),
        "Read the text by `from_xml`, in a node before, and compare what it makes.",
    ),
}
RAISING["xpath_string"] = RAISING["xpath"]
# Those that raise for some values of an argument: no constant of it does so for one row and not for others.
RAISING_UNLESS_CONSTANT: dict[str, tuple[int, str]] = {
    **dict.fromkeys(
        words(
            """
            regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace
            regexp_substr rlike split
            """
        ),
        (1, "Write the pattern as a text."),
    ),
    **dict.fromkeys(words("from_utc_timestamp to_utc_timestamp"), (1, "Write the time zone as a text.")),
    **dict.fromkeys(words("bit_get getbit"), (1, "Write the position as a number.")),
    "array_insert": (1, "Write the position as a number."),
    "next_day": (1, "Write the day as a text."),
    "slice": (1, "Write the position as a number."),
    "split_part": (2, "Write the position as a number."),
}
