"""Expressions that are null for a row where they would end the query: for conditions that decide of rows.

In ANSI mode, which is Spark's default, a cast that fails ends a query, and so do a division by zero, a sum
that overflows, an element that isn't there, and a text compared with a number that isn't one. Spark has
`try_…` for most of it. What was found to raise was measured on Spark 4.2; tests/gems/test_trying.py does it
again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.ddl import SchemaError, read_type
from gem_bundle.diagnostics import Finding
from gem_bundle.expressions.analysis import analyse
from gem_bundle.expressions.casts import casts_of
from gem_bundle.expressions.functions import words
from gem_bundle.expressions.kinds import family, read
from gem_bundle.expressions.names import LONGEST, reference
from gem_bundle.expressions.raising import (
    ARGUMENTS,
    RAISING,
    RAISING_UNLESS_CONSTANT,
    RENAMED,
    TOGETHER,
    TRIED,
)
from gem_bundle.expressions.tokens import Token, UnreadableError, tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gem_bundle.facts import Column, Facts
    from gem_bundle.operators import Option

# From the one that binds least to the one that binds most, as in Spark's grammar.
_SIGNS = (
    frozenset({"=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"}),
    frozenset({"|"}),
    frozenset({"^"}),
    frozenset({"&"}),
    frozenset({"<<", ">>", ">>>"}),
    frozenset({"+", "-", "||"}),
    frozenset({"*", "/", "%", "div"}),
)
_UNITS = words(
    """
    year years month months week weeks day days hour hours minute minutes second seconds millisecond
    milliseconds microsecond microseconds to
    """
)
_NO_NAMES = words(
    """
    and as between case distinct else end escape for from in is like not on or over rlike select then
    using when where with
    """
)
_WITHIN_CALLS = words("both for from in leading placing trailing distinct all")
_TYPES = words("bigint boolean date decimal double float int smallint timestamp tinyint")
_FAILFAST = re.compile(r"'failfast'|\"failfast\"", re.IGNORECASE)


class Raising(NamedTuple):
    """What ends a query for some rows whatever is done.

    Args:
        word: The function or operator, as it is written.
        instead: What to write.
    """

    word: str
    instead: str


class Tried(NamedTuple):
    """An expression that is null where it would end the query.

    Args:
        expression: The expression.
        raising: What in it ends a query nevertheless.
    """

    expression: str
    raising: tuple[Raising, ...] = ()


def tried(expression: str, columns: Sequence[Column] | None) -> Tried:
    """The expression, null for a row where Spark would end the query instead of telling its value.

    Args:
        expression: The expression, without a name of its own.
        columns: The columns it is over; None when they are unknown. A text is only compared with numbers as
            Spark does it where it is known to be one.
    """
    if len(expression) > LONGEST:
        return Tried(expression)
    return _tried(expression, None if columns is None else tuple(columns))


@lru_cache(maxsize=1024)
def _tried(expression: str, columns: tuple[Column, ...] | None) -> Tried:
    try:
        reader = _Reader(expression, columns)
        return Tried(reader.run(), tuple(dict.fromkeys(reader.raising)))
    except (UnreadableError, RecursionError):
        return Tried(casts_of(expression).expression)


def check_tried(expression: str, facts: Facts, option: Option) -> Iterator[Finding]:
    """The warning GB217 for each thing in an expression that ends a query for some rows.

    Args:
        expression: The expression.
        facts: What it is over.
        option: Where it stands, for the finding's place.
    """
    for word, instead in tried(expression, facts.columns).raising:
        message = f"`{word}` can end the query: a row for which it raises isn't rejected, and stops every run"
        yield Finding("GB217", message, instead, option, "warning", word=word)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of an expression: where it is written, what is put into its place, and of which type it is."""

    start: int
    end: int
    text: str
    type: str | None = ""  # empty: not asked for yet
    constant: bool = False
    column: bool = False


class _Reader:
    """Reads an expression as Spark does, as far as operators and calls, and writes it anew."""

    def __init__(self, source: str, columns: tuple[Column, ...] | None) -> None:
        self._source = source
        self._columns = columns
        self._types = {column.name.lower(): column.type for column in columns or ()}
        self._bound: list[str] = []
        self.tokens = list(tokens(source))
        self._at = 0
        self.raising: list[Raising] = []

    def run(self) -> str:
        found = self._expression()
        if self._at < len(self.tokens):
            raise UnreadableError
        return found.text

    # What comes next.

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self.tokens[at].word if at < len(self.tokens) else ""

    def _take(self, *expected: str) -> Token:
        if self._at >= len(self.tokens) or (expected and self._peek() not in expected):
            raise UnreadableError
        self._at += 1
        return self.tokens[self._at - 1]

    def _takes(self, *words: str) -> bool:
        """Whether these words come next, which are passed then."""
        if [self._peek(n) for n in range(len(words))] != list(words):
            return False
        self._at += len(words)
        return True

    @property
    def _end(self) -> int:
        return self.tokens[self._at - 1].end

    # Conditions.

    def _expression(self) -> _Part:
        return self._joined("or", lambda: self._joined("and", self._negated))

    def _joined(self, word: str, read: Callable[[], _Part]) -> _Part:
        left = read()
        while self._takes(word):
            right = read()
            text = f"{self._as(left, 'boolean').text} {word} {self._as(right, 'boolean').text}"
            left = _Part(left.start, right.end, text, "boolean")
        return left

    def _negated(self) -> _Part:
        if self._peek() not in {"not", "!"}:
            return self._predicate()
        start = self._take().start
        found = self._as(self._negated(), "boolean")
        return _Part(start, found.end, f"not {found.text}", "boolean")

    def _predicate(self) -> _Part:
        left = self._value()
        while True:
            negated = "not " if self._peek() == "not" else ""
            asked = self._peek(1 if negated else 0)
            if asked == "is" and not negated:
                text = self._is(left)
            elif asked == "in" and self._peek(2 if negated else 1) == "(":
                self._at += 2 if negated else 1
                text = self._among(left, negated)
            elif asked == "between":
                self._at += 2 if negated else 1
                low = self._value()
                self._take("and")
                parts = [part.text for part in self._together([left, low, self._value()])]
                text = "{0} {3}between {1} and {2}".format(*parts, negated)
            elif asked in {"like", "ilike", "rlike", "regexp"}:
                self._at += 2 if negated else 1
                text = f"{left.text} {negated}{asked} {self._pattern(asked)}"
            else:
                return left
            left = _Part(left.start, self._end, text, "boolean")

    def _is(self, left: _Part) -> str:
        self._take("is")
        negated = "not " if self._takes("not") else ""
        if self._takes("distinct", "from"):
            one, other = self._together([left, self._value()])
            return f"{one.text} is {negated}distinct from {other.text}"
        what = self._take("null", "true", "false", "unknown").word
        if what != "null":
            left = self._as(left, "boolean")
        return f"{left.text} is {negated}{what}"

    def _among(self, left: _Part, negated: str) -> str:
        self._take("(")
        values = self._list()
        self._take(")")
        texts = [value for value in values if self._is_text(value)]
        if not self._is_text(left) or len(texts) in {0, len(values)}:
            first, *others = (part.text for part in self._together([left, *values]))
            return f"{first} {negated}in ({', '.join(others)})"
        # Spark would make numbers of the texts among them.
        first, *others = (
            part.text for part in self._together([left, *(v for v in values if v not in texts)])
        )
        among = f"({left.text} in ({', '.join(v.text for v in texts)}) or {first} in ({', '.join(others)}))"
        return f"(not {among})" if negated else among

    def _pattern(self, asked: str) -> str:
        if self._peek() in {"any", "some", "all"} and self._peek(1) == "(":
            quantified = self._take().text
            self._take("(")
            patterns = self._list()
            self._take(")")
            text = f"{quantified} ({', '.join(part.text for part in patterns)})"
        else:
            patterns = [self._value()]
            text = patterns[0].text
        if not all(pattern.constant for pattern in patterns):
            self.raising.append(Raising(asked, "Write the pattern as a text."))
        return f"{text} escape {self._take().text}" if self._takes("escape") else text

    def _list(self) -> list[_Part]:
        if self._peek() in {"select", "with"}:
            raise UnreadableError
        found = [self._expression()]
        while self._takes(","):
            found.append(self._expression())
        return found

    # Values.

    def _value(self, level: int = 0) -> _Part:
        if level == len(_SIGNS):
            return self._signed()
        left = self._value(level + 1)
        while self._peek() in _SIGNS[level]:
            sign = self._take().word
            right = self._value(level + 1)
            left = self._computed(sign, left, right)
        return left

    def _signed(self) -> _Part:
        if self._peek() not in {"-", "+", "~"}:
            return self._element()
        sign = self._take()
        found = self._signed()
        if sign.word == "-" and not found.constant:
            if self._is_text(found):
                found = self._as(found, "double")
            elif self._family(found) == "i":
                return _Part(sign.start, found.end, f"try_subtract(0, {found.text})", self._type(found))
        text = f"{sign.text} {found.text}" if found.text[:1] in "+-" else f"{sign.text}{found.text}"
        return _Part(sign.start, found.end, text, found.type, found.constant)

    def _computed(self, sign: str, left: _Part, right: _Part) -> _Part:
        whole = (left.start, right.end)
        if sign in _SIGNS[0]:
            one, other = self._together([left, right])
            return _Part(*whole, f"{one.text} {sign} {other.text}", "boolean")
        if sign not in TRIED and sign != "div":
            return _Part(*whole, f"{left.text} {sign} {right.text}")
        source = _Part(*whole, "")
        if left.constant and right.constant:
            return _Part(*whole, f"{left.text} {sign} {right.text}", "", constant=True)
        if self._is_text(left) or self._is_text(right):
            left, right = self._together([left, right], times=True)
            kind = self._type(left) if self._type(left) == self._type(right) else None
        else:
            kind = self._type(source)
        families = {self._family(left), self._family(right)}
        divides = sign in {"/", "%", "div"}
        if divides and right.constant and re.search("[1-9]", right.text) and "-" not in right.text:
            return _Part(*whole, f"{left.text} {sign} {right.text}", kind)
        if sign == "div":
            return _Part(*whole, self._whole(left, right), "bigint")
        if not divides and (("f" in families and families <= set("fin")) or families & set("dtcvy")):
            return _Part(*whole, f"{left.text} {sign} {right.text}", kind)
        return _Part(*whole, f"{TRIED[sign]}({left.text}, {right.text})", kind)

    def _whole(self, left: _Part, right: _Part) -> str:
        """A division of whole numbers, for which Spark has no `try_`."""
        if {self._family(left), self._family(right)} != {"i"}:
            self.raising.append(Raising("div", "Use `floor(try_divide(…, …))`."))
            return f"{left.text} div {right.text}"
        divided = f"({left.text}) div nullif({right.text}, 0)"
        return f"if(({right.text}) = -1, try_subtract(0, {left.text}), {divided})"

    def _element(self) -> _Part:
        """A value and what is taken of it: fields, elements, and other types."""
        found = self._primary()
        while True:
            sign = self._peek()
            if sign == ".":
                self._take()
                name = self._take()
                if name.kind not in {"word", "quoted"} and name.text != "*":
                    raise UnreadableError
                found = _Part(found.start, self._end, f"{found.text}.{name.text}", column=found.column)
            elif sign == "(" and found.column:
                arguments, _ = self._arguments()
                found = _Part(found.start, self._end, f"{found.text}({arguments})", None)
            elif sign == "[":
                self._take()
                key = self._expression()
                self._take("]")
                text = f"{found.text}[{key.text}]"
                if self._family(found) == "a":
                    text = f"get({found.text}, {key.text})"
                found = _Part(found.start, self._end, text)
            elif sign == "::":
                self._take()
                kind = self._type_name()
                found = _Part(found.start, self._end, f"try_cast({found.text} as {kind})", kind)
            elif sign == "collate":
                self._take()
                found = _Part(found.start, self._end, f"{found.text} collate {self._take().text}")
            else:
                return found

    def _primary(self) -> _Part:
        token = self._take()
        if token.kind == "text":
            return self._text(token)
        if token.kind == "number":
            return _Part(token.start, token.end, token.text, _number_type(token.text), constant=True)
        if token.kind == "quoted":
            return _Part(token.start, token.end, token.text, column=True)
        word = token.word
        if word == "(":
            return self._bracketed(token)
        if token.kind != "word":
            raise UnreadableError
        if word == "case":
            return self._case(token)
        following = self.tokens[self._at] if self._at < len(self.tokens) else None
        if following is not None and following.kind == "text" and word != "interval":
            self._take()
            return _Part(token.start, self._end, f"{token.text} {following.text}", constant=True)
        if word == "interval" and following is not None and following.word not in {".", "(", "["}:
            return self._interval(token)
        if self._peek() == "->":
            return self._lambda(token, [token.word])
        if self._peek() == "(":
            return self._call(token)
        if word in _NO_NAMES:
            raise UnreadableError
        if word in {"true", "false", "null"}:
            return _Part(token.start, token.end, token.text, constant=True)
        return _Part(token.start, token.end, token.text, column=True)

    def _text(self, token: Token) -> _Part:
        while self._at < len(self.tokens) and self.tokens[self._at].kind == "text":
            self._take()
        # Two that touch have a quote between them.
        return _Part(token.start, self._end, self._source[token.start : self._end], "string", constant=True)

    def _bracketed(self, token: Token) -> _Part:
        names = self._lambda_names()
        if names is not None:
            return self._lambda(token, names)
        found = self._list()
        self._take(")")
        if len(found) > 1:
            return _Part(token.start, self._end, f"({', '.join(part.text for part in found)})", None)
        (one,) = found
        return _Part(token.start, self._end, f"({one.text})", self._type(one), one.constant)

    def _lambda_names(self) -> list[str] | None:
        """The names of a function of several arguments, of which the bracket is passed; None for others."""
        at, names = self._at, []
        while at + 1 < len(self.tokens) and self.tokens[at].kind in {"word", "quoted"}:
            names.append(self.tokens[at].text.strip("`").lower())
            at += 2
            if self.tokens[at - 1].word != ",":
                break
        if names and at < len(self.tokens) and self.tokens[at - 1].word == ")":
            if self.tokens[at].word != "->":
                return None
            self._at = at
            return names
        return None

    def _lambda(self, first: Token, names: list[str]) -> _Part:
        given = self._source[first.start : self._end]
        self._take("->")
        self._bound.extend(names)
        body = self._expression()
        del self._bound[-len(names) :]
        return _Part(first.start, self._end, f"{given} -> {body.text}", None)

    def _interval(self, first: Token) -> _Part:
        while self._at < len(self.tokens):
            token = self.tokens[self._at]
            if token.kind not in {"text", "number"} and token.word not in {*_UNITS, "+", "-"}:
                break
            # What stands behind a unit is a number of the next one, or an operator.
            last = self.tokens[self._at - 1].word
            if token.word in {"+", "-"} and last not in {"interval", "to"}:
                break
            self._at += 1
        return _Part(first.start, self._end, self._source[first.start : self._end], constant=True)

    def _case(self, first: Token) -> _Part:
        subject = None if self._peek() == "when" else self._expression()
        asked, given = [], []
        while self._takes("when"):
            asked.append(self._expression())
            self._take("then")
            given.append(self._expression())
        otherwise = self._takes("else")
        if otherwise:
            given.append(self._expression())
        self._take("end")
        if not asked:
            raise UnreadableError
        told = ""
        if subject is not None:
            subject, *asked = self._together([subject, *asked])
            told = f" {subject.text}"
        else:
            asked = [self._as(part, "boolean") for part in asked]
        given = self._together(given)
        cases = "".join(
            f" when {one.text} then {other.text}" for one, other in zip(asked, given, strict=False)
        )
        end = f" else {given[-1].text} end" if otherwise else " end"
        return _Part(first.start, self._end, f"case{told}{cases}{end}", self._same_type(given))

    # Calls.

    def _call(self, name: Token) -> _Part:
        word = name.word
        if word in {"cast", "try_cast"}:
            self._take("(")
            operand = self._expression()
            self._take("as")
            kind = self._type_name()
            self._take(")")
            return _Part(name.start, self._end, f"try_cast({operand.text} as {kind})", kind)
        written, arguments = self._arguments()
        whole = (name.start, self._end)
        if arguments is None:
            return _Part(*whole, f"{name.text}({written})")
        wanted = ARGUMENTS.get(word, ())
        arguments = [self._as(part, kind) for part, kind in zip_longest(arguments, wanted[: len(arguments)])]
        if word in TOGETHER:
            arguments = self._together(arguments)
        elif word in {"if", "nvl2"}:
            arguments[1:] = self._together(arguments[1:])
        self._find_raising(name, arguments)
        return _Part(*whole, *self._instead(name, arguments))

    def _arguments(self) -> tuple[str, list[_Part] | None]:
        """What stands in the brackets of a call, written anew; and the arguments, where that is all."""
        self._take("(")
        texts: list[str] = []
        found: list[_Part] = []
        plain = True
        while self._peek() != ")":
            word = self._peek()
            if word in {"select", "with"}:
                raise UnreadableError
            if word == ",":
                self._take()
                texts.append(",")
            elif word in _WITHIN_CALLS and self._peek(1) not in {".", ",", ")"}:
                plain = False
                texts.append(self._take().text)
            elif word == "as":
                self._take()
                plain = False
                texts.append(f"as {self._take().text}")
            elif self._peek(1) == "=>":
                plain = False
                texts.append(f"{self._take().text} {self._take().text}")
            else:
                found.append(self._expression())
                texts.append(found[-1].text)
        self._take(")")
        written = " ".join(texts).replace(" ,", ",")
        return (", ".join(part.text for part in found), found) if plain else (written, None)

    def _instead(self, name: Token, arguments: list[_Part]) -> tuple[str, str | None]:
        """What is written for a call, and its type; an empty one is asked for."""
        word, texts = name.word, [part.text for part in arguments]
        given = ", ".join(texts)
        kind: str | None = ""
        text = f"{name.text}({given})"
        if not texts:
            return text, kind
        first = arguments[0]
        if word in _TYPES and len(texts) == 1:
            text, kind = f"try_cast({given} as {word})", word
        elif word == "element_at" and self._family(first) == "a" and not arguments[-1].constant:
            text = f"try_element_at({texts[0]}, nullif({texts[-1]}, 0))"
        elif word in RENAMED:
            text = f"{RENAMED[word]}({given})"
        elif word == "to_date":
            text, kind = f"try_cast({given} as date)", "date"
            if len(texts) > 1:
                text = f"cast(try_to_timestamp({given}) as date)"
        elif word in {"to_timestamp_ntz", "to_timestamp_ltz"} and len(texts) == 1:
            text = f"try_cast({given} as {word.removeprefix('to_')})"
        elif word in {"unix_timestamp", "to_unix_timestamp"} and self._is_text(first):
            form = texts[1] if len(texts) > 1 else "'yyyy-MM-dd HH:mm:ss'"
            text, kind = f"{name.text}(try_to_timestamp({texts[0]}, {form}))", "bigint"
        elif word == "pmod" and len(texts) == len("ab"):
            text = f"pmod({texts[0]}, nullif({texts[1]}, 0))"
        elif word in {"abs", "negative"} and self._family(first) == "i":
            negative = f"try_subtract(0, {texts[0]})"
            text = negative if word == "negative" else f"if({texts[0]} < 0, {negative}, {texts[0]})"
        elif word in TOGETHER:
            kind = self._same_type(arguments)
        elif word == "if":
            kind = self._same_type(arguments[1:])
        return text, kind

    def _find_raising(self, name: Token, arguments: list[_Part]) -> None:
        word, failing = name.word, any(_FAILFAST.search(part.text) for part in arguments)
        permissive = any("permissive" in part.text.lower() for part in arguments)
        if word in {"from_json", "from_csv", "from_xml"} and failing:
            self.raising.append(Raising(name.text, "Leave out the mode `FAILFAST`."))
        asked = arguments[::2] if word == "map" else arguments
        alike = all(part.constant for part in asked) and word not in {"assert_true", "raise_error"}
        if word in RAISING and not permissive and not alike:
            self.raising.append(Raising(name.text, RAISING[word]))
        position, instead = RAISING_UNLESS_CONSTANT.get(word, (0, ""))
        if instead and len(arguments) > position and not arguments[position].constant:
            self.raising.append(Raising(name.text, instead))
        if word in {"to_timestamp_ntz", "to_timestamp_ltz"} and len(arguments) > 1:
            self.raising.append(Raising(name.text, "Use `try_to_timestamp`."))

    def _type_name(self) -> str:
        start = self.tokens[self._at].start if self._at < len(self.tokens) else len(self._source)
        try:
            end = read_type(self._source, start, whole=False).end
        except SchemaError as error:
            raise UnreadableError from error
        while self._at < len(self.tokens) and self.tokens[self._at].start < end:
            self._at += 1
        return self._source[start : self._end]

    # Types.

    def _type(self, part: _Part) -> str | None:
        if part.type != "":
            return part.type
        source = self._source[part.start : part.end]
        if any(re.search(rf"\b{re.escape(name)}\b", source, re.IGNORECASE) for name in self._bound):
            return None
        parts = reference(source)
        if parts is not None and len(parts) == 1 and parts[0].lower() in self._types:
            return self._types[parts[0].lower()]
        return analyse(source, self._columns).column.type

    def _family(self, part: _Part) -> str:
        kind = self._type(part)
        return family(read(kind)) if kind else ""

    def _is_text(self, part: _Part) -> bool:
        return self._family(part) == "s"

    def _same_type(self, parts: Sequence[_Part]) -> str | None:
        kinds = {self._type(part) for part in parts}
        return kinds.pop() if len(kinds) == 1 else None

    def _as(self, part: _Part, kind: str | None) -> _Part:
        """A text as what Spark makes of it."""
        if not kind or not self._is_text(part):
            return part
        return _Part(part.start, part.end, f"try_cast({part.text} as {kind})", kind)

    def _together(self, parts: Sequence[_Part], *, times: bool = False) -> list[_Part]:
        """Values that Spark makes one type of: where there are texts among others, they become those.

        Args:
            parts: The values.
            times: A text beside a length of time is a time.
        """
        families = {self._family(part) for part in parts if self._type(part) != "void"} - {"s"}
        kind: str | None = None
        if families <= set("ifn"):
            kind = "bigint" if families == {"i"} else "double" if families else None
        elif len(families) == 1:
            others = [self._type(part) for part in parts if self._family(part) in families]
            found = families.copy().pop()
            kind = others[0] if found in set("bdt") else None
            if times and found and found in set("cvy"):
                kind = "timestamp"
        elif families == {"d", "t"}:
            kind = "timestamp"
        return [self._as(part, kind) for part in parts]


def _number_type(text: str) -> str:
    last = text[-1].lower()
    if last in "lsy":
        return "bigint"
    if "." in text or last == "d" or "e" in text.lower():
        return "double" if last != "d" or text[-2:].lower() != "bd" else "decimal(38,18)"
    return "float" if last == "f" else "int"
