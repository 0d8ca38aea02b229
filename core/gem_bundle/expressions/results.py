"""What Spark's functions return, where both of its modes (ANSI and not) agree.

A function that isn't here returns something unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gem_bundle.expressions.functions import words
from gem_bundle.expressions.kinds import (
    BIGINT,
    BINARY,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    common,
    computed,
    family,
    field,
    is_window,
    read,
)
from gem_bundle.schema import DataType, fields_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlglot import exp

    from gem_bundle.facts import Column


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a part of an expression.

    Args:
        type: Its type, or None when unknown.
        delay: The watermark's delay that a column made of it has.
        session: It is a window of sessions.
        column: The column that it is, when it is nothing but a reference to one.
        plain: It is nothing but a reference to a column, known or not.
        window: It is a window over time, or the time of one.
        text: What it says, when it is a text.
        digits: How many digits it has, when it is a whole number that is written out.
    """

    type: DataType | None = None
    delay: str | None = None
    session: bool = False
    column: Column | None = None
    plain: bool = False
    window: bool = False
    text: str | None = None
    digits: int | None = None


def operands(values: Sequence[Value]) -> list[DataType | None]:
    """The types with which Spark computes.

    Beside a decimal a number that is written out is one of its own digits, and not of all that its type
    could have (Spark's `DecimalPrecisionTypeCoercion`).

    Args:
        values: What is known of the operands.
    """
    if not any(family(value.type) == "n" for value in values):
        return [value.type for value in values]
    return [
        value.type if value.digits is None else DataType("decimal", (value.digits, 0)) for value in values
    ]


_FIXED = {
    "boolean": """
        any array_contains arrays_overlap bool_and bool_or boolean contains endswith equal_null every
        exists forall ilike is_valid_utf8 is_valid_variant is_variant_null isnan isnotnull isnull like
        luhn_check map_contains_key regexp regexp_like rlike some startswith xpath_boolean
    """,
    "int": """
        array_size ascii bit_count bit_length cardinality char_length character_length day dayofmonth
        dayofweek dayofyear dense_rank find_in_set hash hour instr int json_array_length len length
        levenshtein locate minute month ntile octet_length position quarter rank regexp_count
        regexp_instr row_number size spark_partition_id unix_date weekday weekofyear xpath_int year
    """,
    "bigint": """
        approx_count_distinct array_position bigint bitmap_bit_position bitmap_bucket_number
        bitmap_count count count_if crc32 factorial hll_sketch_estimate input_file_block_length
        input_file_block_start monotonically_increasing_id regr_count theta_sketch_estimate
        to_unix_timestamp unix_micros unix_millis unix_seconds unix_timestamp width_bucket xpath_long
        xxhash64
    """,
    "smallint": "smallint xpath_short",
    "tinyint": "bit_get getbit tinyint",
    "float": "float xpath_float",
    "double": """
        acos acosh asin asinh atan atan2 atanh cbrt corr cos cosh cot covar_pop covar_samp csc cume_dist
        degrees double e exp expm1 hypot kurtosis ln log log10 log1p log2 months_between percent_rank pi
        pow power radians rand randn random regr_avgx regr_avgy regr_intercept regr_r2 regr_slope
        regr_sxx regr_sxy regr_syy rint sec sign signum sin sinh skewness sqrt std stddev stddev_pop
        stddev_samp tan tanh var_pop var_samp variance xpath_double xpath_number
    """,
    "string": """
        base64 bin char chr concat_ws conv current_catalog current_database current_path current_schema
        current_timezone current_user date_format dayname elt format_number format_string from_unixtime
        get_json_object hex input_file_name java_method md5 monthname parse_url printf randstr reflect
        schema_of_csv schema_of_json schema_of_variant schema_of_xml session_user sha sha1 sha2 soundex
        space string to_char to_csv to_json to_varchar to_xml try_parse_url try_reflect try_url_decode
        typeof url_decode url_encode user uuid version
    """,
    "binary": """
        aes_decrypt aes_encrypt binary to_binary try_aes_decrypt try_to_binary unbase64 unhex
    """,
    "date": """
        add_months curdate current_date date date_from_unix_date date_sub last_day make_date next_day
        to_date trunc try_to_date
    """,
    "timestamp": """
        current_timestamp date_trunc from_utc_timestamp make_timestamp make_timestamp_ltz now timestamp
        timestamp_micros timestamp_millis timestamp_seconds to_timestamp to_timestamp_ltz
        to_utc_timestamp try_make_timestamp try_make_timestamp_ltz try_to_timestamp
    """,
    "timestamp_ntz": """
        convert_timezone localtimestamp make_timestamp_ntz to_timestamp_ntz try_make_timestamp_ntz
    """,
    "interval": "make_interval try_make_interval",
    "interval day to second": "make_dt_interval",
    "interval year to month": "make_ym_interval",
    "variant": "parse_json to_variant_object try_parse_json",
}
FIXED = {name: DataType(kind) for kind, names in _FIXED.items() for name in names.split()}
"""Functions that always return one type."""

_SAME_TEXT = words(
    """
    btrim initcap lcase left lower lpad ltrim mask overlay quote regexp_extract regexp_replace
    regexp_substr repeat replace reverse right rpad rtrim split_part substr substring substring_index
    translate trim ucase upper
    """
)
_SAME = words(
    """
    any_value array_compact array_distinct array_except array_intersect array_remove array_sort
    array_union bit_and bit_or bit_xor filter first first_value lag last last_value lead map_filter max
    max_by min min_by mode nth_value nullif nullifzero shuffle slice sort_array
    """
)
_SEVERAL = frozenset({"max_by", "min_by"})
BRANCHES = {"array": 0, "coalesce": 0, "greatest": 0, "if": 1, "ifnull": 0, "least": 0, "nvl": 0, "nvl2": 1}
"""Functions that return one of their arguments, and the first that may be it."""

_NUMBERS = frozenset("inf")
_COMPUTING = words("mod pmod try_add try_divide try_mod try_multiply try_subtract")


def result_of(name: str, values: Sequence[Value], arguments: Sequence[exp.Expr]) -> Value:
    """What a call of a function returns.

    Args:
        name: The function, in lower case.
        values: What is known of its arguments.
        arguments: Their trees, for functions that take names from them.
    """
    kinds = [value.type for value in values]
    if name in FIXED:
        return Value(FIXED[name])
    if name in {"struct", "named_struct"}:
        return Value(_struct(name, values, arguments))
    if name in {"from_csv", "from_json", "from_xml"}:
        return Value(_schema(values))
    if name in {"round", "bround"} and 1 <= len(arguments) <= 2:
        return Value(_rounded(kinds[0], *arguments[1:]))
    rule = _RULES.get(name)
    if name in _COMPUTING:
        kinds = operands(values)
    if rule is not None and kinds and kinds[0] is not None:
        return Value(rule(kinds))
    if name in BRANCHES:
        return Value(common(kinds[BRANCHES[name] :]))
    if name in _SAME and kinds:
        several = name in _SEVERAL and len(kinds) > 2
        return Value(_list(kinds) if several else kinds[0])
    if name in _SAME_TEXT and kinds:
        return Value(STRING if all(kind == STRING for kind in kinds[:1]) else None)
    return Value()


def concatenated(kinds: Sequence[DataType | None]) -> DataType | None:
    """The type of texts, or of arrays, put together."""
    families = {family(kind) for kind in kinds}
    if "" in families or not families:
        return None
    if families == {"x"}:
        return BINARY
    if families == {"a"}:
        return common(kinds)
    plain = all(kind is not None and (kind == STRING or family(kind) != "s") for kind in kinds)
    return STRING if plain and not families & set("amr") else None


def _struct(name: str, values: Sequence[Value], arguments: Sequence[exp.Expr]) -> DataType | None:
    names: list[str | None]
    if name == "named_struct":
        names = [value.text for value in values[::2]]
        values = values[1::2]
    else:
        from gem_bundle.expressions.trees import field_name

        names = [field_name(argument, position + 1) for position, argument in enumerate(arguments)]
    if len(names) != len(values) or not values:
        return None
    fields = []
    for given, value in zip(names, values, strict=True):
        if given is None or value.type is None:
            return None
        fields.append(field(given, value.type, value.delay))
    return DataType("struct", fields=tuple(fields))


def _schema(values: Sequence[Value]) -> DataType | None:
    text = values[1].text if len(values) > 1 else None
    if text is None:
        return None
    fields = fields_of(text)
    return read(text) if fields is None else DataType("struct", fields=fields)


def _sum(kinds: Sequence[DataType | None]) -> DataType | None:
    kind = kinds[0]
    match family(kind):
        case "i":
            return BIGINT
        case "f":
            return DOUBLE
        case "n" if kind is not None:
            return DataType("decimal", (min(38, kind.arguments[0] + 10), kind.arguments[1]))
        case _:
            return None


def _average(kinds: Sequence[DataType | None]) -> DataType | None:
    kind = kinds[0]
    if family(kind) in set("if"):
        return DOUBLE
    if family(kind) == "n" and kind is not None and kind.arguments[0] <= 34:
        return DataType("decimal", (kind.arguments[0] + 4, kind.arguments[1] + 4))
    return None


def _list(kinds: Sequence[DataType | None]) -> DataType | None:
    return None if kinds[0] is None else DataType("array", parts=(kinds[0],))


def _array(kinds: Sequence[DataType | None]) -> DataType | None:
    element = common(kinds)
    return None if element in {None, VOID} or element is None else DataType("array", parts=(element,))


def _map(kinds: Sequence[DataType | None]) -> DataType | None:
    key, value = common(kinds[::2]), common(kinds[1::2])
    if key is None or value is None or len(kinds) % 2:
        return None
    return DataType("map", parts=(key, value))


def _element(kinds: Sequence[DataType | None]) -> DataType | None:
    kind = kinds[0]
    return kind.parts[-1] if kind is not None and kind.parts else None


def _array_element(kinds: Sequence[DataType | None]) -> DataType | None:
    kind = kinds[0]
    return kind.parts[0] if kind is not None and kind.name == "array" else None


def _joined_text(kinds: Sequence[DataType | None]) -> DataType | None:
    text = _array_element(kinds)
    return text if text is not None and text.name == "string" else None


def _keys(kinds: Sequence[DataType | None]) -> DataType | None:
    kind = kinds[0]
    return DataType("array", parts=kind.parts[:1]) if kind is not None and kind.name == "map" else None


def _values(kinds: Sequence[DataType | None]) -> DataType | None:
    kind = kinds[0]
    return DataType("array", parts=kind.parts[1:]) if kind is not None and kind.name == "map" else None


def _transform(kinds: Sequence[DataType | None]) -> DataType | None:
    return _list(kinds[1:]) if len(kinds) == 2 else None


def _same_number(kinds: Sequence[DataType | None]) -> DataType | None:
    return kinds[0] if family(kinds[0]) in _NUMBERS else None


def _whole(kinds: Sequence[DataType | None]) -> DataType | None:
    kind = kinds[0]
    if len(kinds) != 1 or kind is None:
        return None
    if family(kind) == "n":
        return kind if kind.arguments[1] == 0 else _without_fraction(kind)
    return BIGINT if family(kind) in set("if") else None


def _rounded(kind: DataType | None, places: exp.Expr | None = None) -> DataType | None:
    """The type of a number rounded to some digits behind the point, or before it; by default to none."""
    from sqlglot import exp

    if kind is None or family(kind) != "n":
        return kind if family(kind) in set("if") else None
    if places is None:
        return _without_fraction(kind)
    number = places.this if isinstance(places, exp.Neg) else places
    if not isinstance(number, exp.Literal) or number.is_string or not number.this.isdecimal():
        return None
    precision, scale = kind.arguments
    whole = precision - scale + 1
    if isinstance(places, exp.Neg):
        return DataType("decimal", (min(38, max(whole, int(number.this) + 1)), 0))
    kept = min(scale, int(number.this))
    return DataType("decimal", (min(38, whole + kept), kept))


def _without_fraction(kind: DataType) -> DataType:
    """A decimal without the digits behind its point, and with one more before it: 9.9 becomes 10."""
    precision, scale = kind.arguments
    return DataType("decimal", (min(38, precision - scale + 1), 0))


def _window(kinds: Sequence[DataType | None]) -> DataType | None:
    kind = kinds[0]
    time = TIMESTAMP_NTZ if kind == TIMESTAMP_NTZ else TIMESTAMP
    if family(kind) == "r" and kind is not None:
        return kind if is_window(kind) else None
    if family(kind) not in set("tsd"):
        return None
    return DataType("struct", fields=(field("start", time), field("end", time)))


def _window_time(kinds: Sequence[DataType | None]) -> DataType | None:
    kind = kinds[0]
    return kind.fields[-1].type if kind is not None and kind.fields else None


def _date_add(kinds: Sequence[DataType | None]) -> DataType | None:
    return DATE if len(kinds) == 2 else _time_add(kinds)


def _time_add(kinds: Sequence[DataType | None]) -> DataType | None:
    """The type of a time some units later, which stand before it: a date is one at midnight."""
    kind = kinds[2] if len(kinds) == 3 else None
    if kind == DATE:
        return TIMESTAMP
    return kind if family(kind) == "t" else None


def _date_difference(kinds: Sequence[DataType | None]) -> DataType | None:
    return INT if len(kinds) == 2 else BIGINT


def _split(kinds: Sequence[DataType | None]) -> DataType | None:
    return DataType("array", parts=(STRING,)) if kinds[0] == STRING else None


def _appended(kinds: Sequence[DataType | None]) -> DataType | None:
    kind = kinds[0]
    same = kind is not None and len(kinds) == 2 and kind.parts == (kinds[1],)
    return kind if same else None


def _remainder(kinds: Sequence[DataType | None]) -> DataType | None:
    return computed("%", kinds[0], kinds[1]) if len(kinds) == 2 else None


def _nested(kinds: Sequence[DataType | None]) -> DataType | None:
    inner = _array_element(kinds)
    return inner if inner is not None and inner.name == "array" else None


def _plus(kinds: Sequence[DataType | None]) -> DataType | None:
    return computed("+", kinds[0], kinds[1]) if len(kinds) == 2 else None


def _minus(kinds: Sequence[DataType | None]) -> DataType | None:
    return computed("-", kinds[0], kinds[1]) if len(kinds) == 2 else None


def _times(kinds: Sequence[DataType | None]) -> DataType | None:
    return computed("*", kinds[0], kinds[1]) if len(kinds) == 2 else None


def _quotient(kinds: Sequence[DataType | None]) -> DataType | None:
    return computed("/", kinds[0], kinds[1]) if len(kinds) == 2 else None


def _percentile(kinds: Sequence[DataType | None]) -> DataType | None:
    if family(kinds[0]) not in _NUMBERS or len(kinds) < 2 or kinds[1] is None:
        return None
    return _list(kinds) if family(kinds[1]) == "a" else kinds[0]


def _sequence(kinds: Sequence[DataType | None]) -> DataType | None:
    first, second = kinds[0], kinds[1] if len(kinds) > 1 else None
    return _list(kinds) if first == second and family(first) in set("idt") else None


def _reversed(kinds: Sequence[DataType | None]) -> DataType | None:
    return kinds[0] if family(kinds[0]) == "a" or kinds[0] == STRING else None


def _shifted(kinds: Sequence[DataType | None]) -> DataType | None:
    return kinds[0] if kinds[0] in {INT, BIGINT} else None


def _maps(kinds: Sequence[DataType | None]) -> DataType | None:
    return kinds[0] if len(set(kinds)) == 1 and family(kinds[0]) == "m" else None


def _zipped_map(kinds: Sequence[DataType | None]) -> DataType | None:
    key, value = (_array_element([kind]) for kind in (*kinds, None)[:2])
    return None if key is None or value is None else DataType("map", parts=(key, value))


def _entries(kinds: Sequence[DataType | None]) -> DataType | None:
    kind = kinds[0]
    if kind is None or kind.name != "map":
        return None
    entry = DataType("struct", fields=(field("key", kind.parts[0]), field("value", kind.parts[1])))
    return DataType("array", parts=(entry,))


def _second(kinds: Sequence[DataType | None]) -> DataType | None:
    return INT if family(kinds[0]) in set("tds") else None


def _median(kinds: Sequence[DataType | None]) -> DataType | None:
    return DOUBLE if family(kinds[0]) in set("if") else None


def _map_of_texts(kinds: Sequence[DataType | None]) -> DataType | None:
    return DataType("map", parts=(STRING, STRING)) if kinds[0] == STRING else None


_RULES: dict[str, Callable[[Sequence[DataType | None]], DataType | None]] = {
    "abs": _same_number,
    "approx_percentile": _percentile,
    "array": _array,
    "array_agg": _list,
    "array_append": _appended,
    "array_join": _joined_text,
    "array_max": _array_element,
    "array_min": _array_element,
    "array_prepend": _appended,
    "array_repeat": _list,
    "avg": _average,
    "ceil": _whole,
    "ceiling": _whole,
    "collect_list": _list,
    "collect_set": _list,
    "concat": concatenated,
    "date_add": _date_add,
    "dateadd": _date_add,
    "date_diff": _date_difference,
    "datediff": _date_difference,
    "element_at": _element,
    "explode": _array_element,
    "explode_outer": _array_element,
    "flatten": _nested,
    "floor": _whole,
    "get": _array_element,
    "map": _map,
    "map_concat": _maps,
    "map_entries": _entries,
    "map_from_arrays": _zipped_map,
    "map_keys": _keys,
    "map_values": _values,
    "mean": _average,
    "median": _median,
    "mod": _remainder,
    "negative": _same_number,
    "percentile_approx": _percentile,
    "pmod": _remainder,
    "positive": _same_number,
    "reverse": _reversed,
    "second": _second,
    "sequence": _sequence,
    "session_window": _window,
    "shiftleft": _shifted,
    "shiftright": _shifted,
    "split": _split,
    "str_to_map": _map_of_texts,
    "sum": _sum,
    "timestampadd": _time_add,
    "transform": _transform,
    "try_add": _plus,
    "try_avg": _average,
    "try_divide": _quotient,
    "try_element_at": _element,
    "try_mod": _remainder,
    "try_multiply": _times,
    "try_subtract": _minus,
    "try_sum": _sum,
    "window": _window,
    "window_time": _window_time,
}
