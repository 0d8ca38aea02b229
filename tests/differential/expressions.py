"""Expressions at random, mostly well typed, over the columns of a relation."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from tests.differential.relations import WHOLE, WINDOW, Col

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from tests.differential.relations import Relation

INTERVALS = (
    "interval 1 hour",
    "interval 10 minutes",
    "interval '1' hour",
    "interval '30' minute",
    "interval '5 minutes'",
    "interval '1 hour 30 minutes'",
    "INTERVAL 2 HOURS",
    "interval 1 day",
    "interval '1 02:00:00' day to second",
    "interval '90' second",
    "make_dt_interval(0, 1)",
    "make_interval(0, 0, 0, 0, 1)",
    "interval 1 week",
    "interval 1 month",
    "2 * interval '1' hour",
    "interval 1 hour 5 minutes",
    "interval '1' day",
)
DURATIONS = (
    "1 minute",
    "5 minutes",
    "10 minutes",
    "1 hour",
    "30 seconds",
    "1 day",
    "90 minutes",
    "1 hour 30 minutes",
)
_PLAIN = re.compile(r"[A-Za-z_]\w*")


class Writer:
    """Writes expressions over columns.

    Args:
        random: Where chance comes from.
        cols: The columns that can be named.
        ambiguous: Names in lower case that need a qualifier.
    """

    def __init__(self, random: Random, cols: Sequence[Col], ambiguous: set[str] | None = None) -> None:
        self.random = random
        self.cols = list(cols)
        self._ambiguous = ambiguous or set()
        self.deterministic = False

    @classmethod
    def over(cls, random: Random, relation: Relation) -> Writer:
        """A writer over all that can be named in a relation."""
        return cls(random, relation.usable(), relation.ambiguous())

    def chance(self, share: float) -> bool:
        """True in that share of cases."""
        return self.random.random() < share

    def of_family(self, *families: str) -> list[Col]:
        """The columns of these families."""
        return [col for col in self.cols if col.family in families]

    def name(self, col: Col) -> str:
        """A column's name as an expression has it, in one of the spellings that people use."""
        plain = _PLAIN.fullmatch(col.name) is not None
        text = col.name if plain else f"`{col.name}`"
        roll = self.random.random()
        if plain and roll < 0.05:
            text = f"`{text}`"
        elif plain and roll < 0.09:
            text = text.upper()
        if col.qualifier is not None and (col.name.lower() in self._ambiguous or self.chance(0.15)):
            return f"{col.qualifier}.{text}"
        return text

    def ref(self, col: Col) -> str:
        """The same, sometimes in brackets."""
        return f"({self.name(col)})" if self.chance(0.03) else self.name(col)

    def any(self, depth: int = 2) -> tuple[str, str]:
        """An expression of some type, and its type."""
        made = [self.number, self.number, self.string, self.string, self.boolean, self.timestamp, self.date]
        return self.random.choice(made)(depth)

    def of_type(self, type_: str, depth: int = 1) -> str:
        """An expression of a column's type, or of its family."""
        makers: dict[str, Callable[[int], tuple[str, str]]] = {
            "number": self.number,
            "string": self.string,
            "boolean": self.boolean,
            "timestamp": self.timestamp,
            "date": self.date,
        }
        maker = makers.get(Col("", type_).family)
        return maker(depth)[0] if maker is not None else "null"

    def number(self, depth: int = 2) -> tuple[str, str]:
        """A number and its type."""
        cols = self.of_family("number")
        if cols and (depth <= 0 or self.chance(0.45)):
            col = self.random.choice(cols)
            return self.ref(col), col.type
        if depth <= 0:
            return self.random.choice(["1", "0", "42", "1.5", "2D", "10L"]), "int"
        first, type_ = self.number(depth - 1)
        wide = "bigint" if type_ in WHOLE else "double"
        forms: list[Callable[[], tuple[str, str]]] = [
            lambda: (f"{first} + {self.number(0)[0]}", wide),
            lambda: (f"{first} * 2", type_),
            lambda: (f"{first} - 1", type_),
            lambda: (f"{first} % 3", type_),
            lambda: (f"-{first}", type_),
            lambda: (f"{first} / 60", "double"),
            lambda: (f"abs({first})", type_),
            lambda: (f"coalesce({first}, 0)", wide),
            lambda: (f"cast({first} as bigint)", "bigint"),
            lambda: (f"cast({first} as double)", "double"),
            lambda: (f"({first})::bigint", "bigint"),
            lambda: (f"round({first}, 1)", "double"),
            lambda: (f"greatest({first}, 1)", wide),
            lambda: (f"nullif({first}, 0)", type_),
            lambda: (f"if({self.boolean(depth - 1)[0]}, {first}, 0)", wide),
            lambda: (f"case when {self.boolean(depth - 1)[0]} then {first} else 0 end", wide),
            lambda: (f"length({self.string(depth - 1)[0]})", "int"),
            lambda: (f"hash({self.any(depth - 1)[0]})", "int"),
            lambda: (f"xxhash64({self.any(depth - 1)[0]}, {first})", "bigint"),
            lambda: (f"year({self.timestamp(depth - 1)[0]})", "int"),
            lambda: (f"hour({self.timestamp(depth - 1)[0]})", "int"),
            lambda: (f"extract(minute from {self.timestamp(depth - 1)[0]})", "int"),
            lambda: (f"unix_timestamp({self.timestamp(depth - 1)[0]})", "bigint"),
            lambda: (f"cast({self.timestamp(depth - 1)[0]} as bigint)", "bigint"),
            lambda: (f"datediff({self.date(depth - 1)[0]}, {self.date(depth - 1)[0]})", "int"),
            lambda: (f"try_cast({self.string(depth - 1)[0]} as int)", "int"),
            lambda: (f"pmod({first}, 7)", type_),
        ]
        if self.random.random() < 0.3 and not self.deterministic:
            forms.append(lambda: ("rand()", "double"))
        forms += self._fields("number") + self._elements("number")
        return self.random.choice(forms)()

    def string(self, depth: int = 2) -> tuple[str, str]:
        """A text."""
        cols = self.of_family("string")
        if cols and (depth <= 0 or self.chance(0.5)):
            return self.ref(self.random.choice(cols)), "string"
        if depth <= 0:
            return self.random.choice(["'x'", "'page'", "'it''s'", '"a b"', "''"]), "string"
        text = self.string(depth - 1)[0]
        forms: list[Callable[[], tuple[str, str]]] = [
            lambda: (f"upper({text})", "string"),
            lambda: (f"lower({text})", "string"),
            lambda: (f"trim({text})", "string"),
            lambda: (f"concat({text}, '-', {self.string(depth - 1)[0]})", "string"),
            lambda: (f"{text} || 'x'", "string"),
            lambda: (f"substring({text}, 1, 3)", "string"),
            lambda: (f"cast({self.any(depth - 1)[0]} as string)", "string"),
            lambda: (f"string({self.number(depth - 1)[0]})", "string"),
            lambda: (f"date_format({self.timestamp(depth - 1)[0]}, 'yyyy-MM-dd')", "string"),
            lambda: (f"coalesce({text}, 'none')", "string"),
            lambda: (f"case when {self.boolean(depth - 1)[0]} then {text} else 'other' end", "string"),
            lambda: (f"case {text} when 'a' then 'b' end", "string"),
            lambda: (f"split({text}, ',')[0]", "string"),
            lambda: (f"element_at(split({text}, '/'), 1)", "string"),
            lambda: (f"get_json_object({text}, '$.a.b')", "string"),
            lambda: (f"regexp_extract({text}, '(\\\\d+)', 1)", "string"),
            lambda: (f"replace({text}, 'a', 'b')", "string"),
            lambda: (f"concat_ws(',', {text}, 'z')", "string"),
            lambda: (f"to_json(struct({self.named()}))", "string"),
            lambda: (f"nvl({text}, '')", "string"),
            lambda: (f"md5({text})", "string"),
            lambda: ("current_user", "string"),
        ]
        if self.random.random() < 0.3 and not self.deterministic:
            forms.append(lambda: ("uuid()", "string"))
        forms += self._fields("string") + self._elements("string")
        return self.random.choice(forms)()

    def named(self) -> str:
        """A column's name, or a literal under a name."""
        return self.name(self.random.choice(self.cols)) if self.cols else "1 as one"

    def timestamp(self, depth: int = 2) -> tuple[str, str]:
        """A moment in time."""
        cols = self.of_family("timestamp")
        if cols and (depth <= 0 or self.chance(0.5)):
            return self.ref(self.random.choice(cols)), "timestamp"
        if depth <= 0:
            return "timestamp '2024-01-01 00:00:00'", "timestamp"
        moment = self.timestamp(depth - 1)[0]
        forms: list[Callable[[], tuple[str, str]]] = [
            lambda: (f"{moment} + {self.interval()}", "timestamp"),
            lambda: (f"{moment} - {self.interval()}", "timestamp"),
            lambda: (f"cast({moment} as timestamp)", "timestamp"),
            lambda: (f"timestamp({moment})", "timestamp"),
            lambda: (f"date_trunc('hour', {moment})", "timestamp"),
            lambda: (f"to_timestamp({self.string(depth - 1)[0]})", "timestamp"),
            lambda: (f"to_timestamp({self.date(depth - 1)[0]})", "timestamp"),
            lambda: (f"coalesce({moment}, current_timestamp())", "timestamp"),
            lambda: (f"greatest({moment}, {self.timestamp(0)[0]})", "timestamp"),
            lambda: (f"case when {self.boolean(depth - 1)[0]} then {moment} end", "timestamp"),
            lambda: (f"timestamp_seconds({self.number(0)[0]})", "timestamp"),
            lambda: (f"timestampadd(HOUR, 1, {moment})", "timestamp"),
            lambda: (f"from_utc_timestamp({moment}, 'Europe/Berlin')", "timestamp"),
            lambda: ("current_timestamp()", "timestamp"),
            lambda: ("now()", "timestamp"),
        ]
        forms += self._fields("timestamp")
        return self.random.choice(forms)()

    def interval(self) -> str:
        """An interval."""
        return self.random.choice(INTERVALS)

    def date(self, depth: int = 2) -> tuple[str, str]:
        """A date."""
        cols = self.of_family("date")
        if cols and (depth <= 0 or self.chance(0.5)):
            return self.ref(self.random.choice(cols)), "date"
        if depth <= 0:
            return "date '2024-01-31'", "date"
        moment = self.timestamp(depth - 1)[0]
        forms = [
            f"to_date({moment})",
            f"date({moment})",
            f"cast({moment} as date)",
            f"date_add({self.date(depth - 1)[0]}, 7)",
            f"last_day({self.date(depth - 1)[0]})",
            "current_date",
            "current_date()",
        ]
        return self.random.choice(forms), "date"

    def boolean(self, depth: int = 2) -> tuple[str, str]:
        """A condition."""
        cols = self.of_family("boolean")
        if cols and self.chance(0.25):
            return self.ref(self.random.choice(cols)), "boolean"
        if depth <= 0:
            number = self.number(0)[0]
            simple = [f"{number} > 1", f"{self.named_only()} is not null", f"{self.string(0)[0]} = 'a'"]
            return self.random.choice(simple), "boolean"
        forms: list[Callable[[], str]] = [
            lambda: f"{self.number(depth - 1)[0]} {self.comparison()} {self.number(0)[0]}",
            lambda: f"{self.number(depth - 1)[0]} between 1 and 100",
            lambda: f"{self.number(depth - 1)[0]} in (1, 2, 3)",
            lambda: f"{self.string(depth - 1)[0]} = {self.string(0)[0]}",
            lambda: f"{self.string(depth - 1)[0]} in ('a', 'b')",
            lambda: f"{self.string(depth - 1)[0]} like 'a%'",
            lambda: f"{self.string(depth - 1)[0]} rlike '^a'",
            lambda: f"startswith({self.string(depth - 1)[0]}, 'a')",
            lambda: f"{self.timestamp(depth - 1)[0]} {self.comparison()} {self.timestamp(0)[0]}",
            lambda: f"{self.timestamp(depth - 1)[0]} > current_timestamp() - {self.interval()}",
            lambda: f"{self.date(depth - 1)[0]} >= '2024-01-01'",
            lambda: f"{self.named_only()} is null",
            lambda: f"{self.named_only()} is not null",
            lambda: f"not ({self.boolean(depth - 1)[0]})",
            lambda: f"({self.boolean(depth - 1)[0]}) and ({self.boolean(depth - 1)[0]})",
            lambda: f"{self.boolean(0)[0]} or {self.boolean(0)[0]}",
            lambda: f"{self.number(0)[0]} <=> {self.number(0)[0]}",
            lambda: f"isnotnull({self.named_only()})",
            lambda: "true",
        ]
        for col in self.of_family("array"):
            if col.type in {"array<string>", "array<int>"}:
                known = "'a'" if "string" in col.type else "1"
                name = self.name(col)
                forms.append(partial("array_contains({}, {})".format, name, known))
                forms.append(partial("exists({}, x -> x = {})".format, name, known))
        return self.random.choice(forms)(), "boolean"

    def named_only(self) -> str:
        """A column's name, or a literal."""
        return self.name(self.random.choice(self.cols)) if self.cols else "1"

    def comparison(self) -> str:
        """One of the operators that compare."""
        return self.random.choice(["<", "<=", ">", ">=", "=", "<>", "!="])

    def _fields(self, family: str) -> list[Callable[[], tuple[str, str]]]:
        """Fields of structs."""
        return [
            _given(f"{self.name(col)}.{field.name}", field.type)
            for col in self.of_family("struct")
            for field in col.fields()
            if field.family == family
        ] * 3

    def _elements(self, family: str) -> list[Callable[[], tuple[str, str]]]:
        """Elements of arrays, values of maps, and what functions make of them."""
        found: list[Callable[[], tuple[str, str]]] = []
        for col in self.of_family("array", "map"):
            name = self.name(col)
            if family == "number":
                found.append(_given(f"size({name})", "int"))
            elif family == "string" and col.type == "array<string>":
                found.append(_given(f"{name}[0]", "string"))
                found.append(_given(f"array_join(transform({name}, x -> upper(x)), ',')", "string"))
            elif family == "string" and col.type == "map<string, string>":
                found.append(_given(f"{name}['k']", "string"))
        return found

    def event_time(self) -> tuple[str, str, bool]:
        """An expression over event time where it is a matter of taste whether the mark survives.

        Returns:
            The expression, its type, and whether the mark should survive.
        """
        times = [c for c in self.of_family("timestamp") if c.marked] or self.of_family("timestamp")
        windows = [col for col in self.cols if col.type == WINDOW]
        structs = [c for c in self.of_family("struct") if any(f.type == "timestamp" for f in c.fields())]
        forms: list[tuple[str, str, bool]] = []
        if times:
            col = self.random.choice(times)
            at = self.name(col)
            field = f"struct<{col.name}: timestamp>"
            duration = self.random.choice(DURATIONS)
            forms += [(at, "timestamp", col.marked)] * 4
            forms += [
                (f"({at})", "timestamp", col.marked),
                (f"struct({at})", field, False),
                (f"struct({at} as t)", "struct<t: timestamp>", False),
                (f"named_struct('t', {at})", "struct<t: timestamp>", False),
                (f"struct({at}).{col.name}", "timestamp", False),
                (f"window({at}, '{duration}')", WINDOW, col.marked),
                (f"window({at}, '1 hour', '30 minutes')", WINDOW, col.marked),
                (f"session_window({at}, '{duration}')", WINDOW, col.marked),
                (f"cast({at} as timestamp)", "timestamp", False),
                (f"timestamp({at})", "timestamp", False),
                (f"{at} + {self.interval()}", "timestamp", False),
                (f"{at} + interval 0 seconds", "timestamp", False),
                (f"date_trunc('minute', {at})", "timestamp", False),
                (f"coalesce({at}, {at})", "timestamp", False),
                (f"array(struct({at}))[0].{col.name}", "timestamp", False),
                (f"if(true, {at}, {at})", "timestamp", False),
                (f"window({at}, '{duration}').end", "timestamp", False),
            ]
        for col in windows:
            name = self.name(col)
            forms += [(name, WINDOW, col.marked)] * 2
            forms += [
                (f"window_time({name})", "timestamp", col.marked),
                (f"{name}.start", "timestamp", False),
                (f"{name}.end", "timestamp", False),
                (f"struct({name})", f"struct<{col.name}: {WINDOW}>", False),
            ]
        for col in structs:
            inner = self.random.choice([f for f in col.fields() if f.type == "timestamp"])
            forms += [(f"{self.name(col)}.{inner.name}", "timestamp", False)] * 3
        return self.random.choice(forms) if forms else (*self.any(1), False)


def aggregate(writer: Writer, depth: int = 1) -> tuple[str, str]:
    """An aggregate over columns, and its type."""
    writer.deterministic = True
    number, type_ = writer.number(depth)
    wide = "bigint" if type_ in WHOLE else "double"
    forms: list[Callable[[], tuple[str, str]]] = [
        *[_given("count(*)", "bigint")] * 6,
        *[_given(f"sum({number})", wide)] * 4,
        _given(f"avg({number})", "double"),
        _given(f"min({number})", type_),
        _given(f"max({number})", type_),
        _given("count(1)", "bigint"),
        lambda: (f"count({writer.named_only()})", "bigint"),
        lambda: (f"max({writer.timestamp(0)[0]})", "timestamp"),
        lambda: (f"min({writer.timestamp(0)[0]})", "timestamp"),
        lambda: (f"first({writer.string(0)[0]})", "string"),
        lambda: (f"last({writer.string(0)[0]}, true)", "string"),
        lambda: (f"any_value({writer.string(0)[0]})", "string"),
        lambda: (f"max_by({writer.string(0)[0]}, {number})", "string"),
        lambda: (f"collect_list({writer.string(0)[0]})", "array<string>"),
        lambda: (f"collect_set({writer.string(0)[0]})", "array<string>"),
        lambda: (f"approx_count_distinct({writer.named_only()})", "bigint"),
        lambda: (f"count_if({writer.boolean(1)[0]})", "bigint"),
        lambda: (f"bool_or({writer.boolean(1)[0]})", "boolean"),
        lambda: (f"count(*) filter (where {writer.boolean(1)[0]})", "bigint"),
        lambda: (f"sum(case when {writer.boolean(1)[0]} then 1 else 0 end)", "bigint"),
        _given(f"sum({number}) / count(*)", "double"),
        _given(f"max({number}) - min({number})", type_),
        _given(f"round(avg({number}), 2)", "double"),
        _given(f"coalesce(sum({number}), 0)", wide),
        _given(f"stddev({number})", "double"),
        _given(f"percentile_approx({number}, 0.5)", type_),
    ]
    if writer.chance(0.05):
        return f"count(distinct {writer.named_only()})", "bigint"
    if writer.chance(0.015):
        return f"sum(distinct {number})", wide
    return writer.random.choice(forms)()


def _given(text: str, type_: str) -> Callable[[], tuple[str, str]]:
    return lambda: (text, type_)
