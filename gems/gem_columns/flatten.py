"""The transform `flatten`: fields of structs as columns, elements of arrays as rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import model_validator

from gem_bundle import Facts, Field, Finding, GemError, Lineage, Operator, Options, Transform
from gem_bundle.expressions import backquoted, project
from gem_bundle.lineage import passed
from gem_bundle.schema import type_of, with_article
from gem_bundle.types import StringList
from gem_columns.select import projected

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from gem_bundle.schema import DataType

_ELEMENT = "__gem_bundle_element_"


class FlattenOptions(Options):
    """Options of the transform `flatten`."""

    columns: StringList | None = Field(
        None,
        min_length=1,
        description="The columns whose fields become columns; by default all structs.",
        examples=[["payload"]],
        change="from_now_on",
    )
    explode: StringList = Field(
        [],
        description="Arrays whose elements become rows, one after the other: a column, or the way to a "
        "field, `order.items`. A row with an empty array, or null, stays as one.",
        examples=[["items"], ["order.items", "order.items.discounts"]],
        change="from_now_on",
    )
    depth: int | None = Field(
        None,
        ge=1,
        description="How many levels of structs become columns; by default all.",
        change="from_now_on",
    )
    separator: str = Field(
        "_",
        description="What stands between the names of a column and its field. Empty text leaves the field's "
        "name alone.",
        examples=["_", "."],
        change="from_now_on",
    )

    @model_validator(mode="after")
    def _ways_are_ways(self) -> FlattenOptions:
        seen: set[str] = set()
        for way in self.explode:
            if not all(way.split(".")):
                raise ValueError(f"`{way}` is no way to a field: write `column.field`")
            if way.lower() in seen:
                raise ValueError(f"`{way}` stands twice in `explode`")
            seen.add(way.lower())
        return self


class Flatten(Transform[FlattenOptions]):
    """Make columns of the fields of structs, and rows of the elements of arrays.

    A field's column stands where the struct stood, and is called by both names: `payload_user`. Event time
    stays event time. Each array in `explode` multiplies the rows: two of them give every pair of elements,
    unless the second is within the first. All of it depends on one row at a time, so a stream keeps no state.

    In visual tools: FlattenSchema, Normalize.
    """

    example = {"columns": ["order"], "explode": ["order.items"]}

    def apply(self, *inputs: DataFrame) -> DataFrame:
        """The rows with the fields as columns.

        Raises:
            GemError: When a column isn't there or isn't what the options say, or two would have one name.
        """
        from pyspark.sql.functions import expr

        (df,) = inputs
        types = [(field.name, _of_spark(field.dataType)) for field in df.schema]
        made = self._plan(types)
        for problem in made.problems:
            raise GemError("GB205", problem.message, problem.hint, problem.option)
        for name, array in made.elements:
            df = df.select("*", expr(f"explode_outer({array})").alias(name))
        return df.select(*(expr(text).alias(name) for name, text in made.columns))

    def infer(self, *inputs: Facts) -> Facts:
        """The fields as columns, as far as the types are known."""
        (facts,) = inputs
        made = self._known(facts)
        for name, array in made.elements if made is not None else ():
            columns = project(["*", f"explode_outer({array}) as {name}"], facts)
            facts = facts.after(Operator("generate", "explode")).with_columns(columns)
        if made is None:
            facts = facts.after(Operator("generate", "explode")) if self.options.explode else facts
            return facts.with_columns(None)
        if made.problems or facts.columns is None:
            return facts.with_columns(None)
        return facts.with_columns(project(dict(made.columns), facts))

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """Each field of its struct, and the elements of one array; those of several aren't followed."""
        (facts,) = inputs
        made = self._known(facts)
        if made is None or made.problems or passed(facts.columns) is None:
            return None
        columns = dict(made.columns)
        if not made.elements:
            return projected(columns, facts)
        name, array = made.elements[0]
        if len(made.elements) > 1 or any(name in text and text != name for text in columns.values()):
            return None
        taken_apart = {key: f"explode_outer({array})" for key, text in columns.items() if text == name}
        return projected(columns | taken_apart, facts)

    def check(self, *inputs: Facts) -> Iterator[Finding]:
        """The columns are structs and arrays, and no two columns get one name."""
        made = self._known(inputs[0])
        yield from made.problems if made is not None else ()

    def _known(self, facts: Facts) -> _Plan | None:
        """What is made of columns whose types are known; None where they aren't."""
        if facts.columns is None:
            return None
        types = [(column.name, _of_ddl(column.type)) for column in facts.columns]
        concerned = {name.lower() for name in self.options.columns or [name for name, _ in types]}
        concerned |= {way.split(".")[0].lower() for way in self.options.explode}
        if any(kind.unknown for name, kind in types if name.lower() in concerned):
            return None
        return self._plan(types)

    def _plan(self, types: Sequence[tuple[str, _Kind]]) -> _Plan:
        return _Planner(self.options, types).plan()


@dataclass(frozen=True, slots=True)
class _Kind:
    """A type, as far as it matters here.

    Args:
        name: For people.
        fields: The fields of a struct.
        element: The type of an array's elements.
        unknown: Nothing is known of it.
    """

    name: str
    fields: tuple[tuple[str, _Kind], ...] | None = None
    element: _Kind | None = None
    unknown: bool = False


def _of_ddl(text: str | None) -> _Kind:
    """A type as `infer` knows it."""
    found = None if text is None else type_of(text)
    return _Kind(text or "", unknown=True) if found is None else _of_type(found)


def _of_type(kind: DataType) -> _Kind:
    if kind.name == "struct":
        return _Kind("struct", tuple((field.name, _of_type(field.type)) for field in kind.fields))
    element = _of_type(kind.parts[0]) if kind.name == "array" else None
    return _Kind(kind.name, element=element)


def _of_spark(kind: Any) -> _Kind:
    """A type as Spark knows it."""
    name = kind.typeName()
    if name == "struct":
        return _Kind(name, tuple((field.name, _of_spark(field.dataType)) for field in kind))
    return _Kind(name, element=_of_spark(kind.elementType) if name == "array" else None)


class _Plan(NamedTuple):
    """What `flatten` does.

    Args:
        elements: The columns that hold the elements of arrays for a while, each with its array.
        columns: The columns that come out, each with its expression.
        problems: What is wrong.
    """

    elements: list[tuple[str, str]]
    columns: list[tuple[str, str]]
    problems: list[Finding]


class _Planner:
    def __init__(self, options: FlattenOptions, types: Sequence[tuple[str, _Kind]]) -> None:
        self._options = options
        self._types = types
        # What stands for an array whose elements become rows, by the way to it.
        self._elements: dict[tuple[str, ...], str] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        self._plan = _Plan([], [], [])

    def plan(self) -> _Plan:
        known = {name.lower(): kind for name, kind in self._types}
        for position, name in enumerate(self._options.columns or ()):
            kind = known.get(name.lower())
            if kind is None:
                self._wrong(f"there is no column `{name}`", "", ("columns", position))
            elif kind.fields is None and not self._explodes(name):
                message = f"`{name}` is {with_article(kind.name)} and has no fields"
                self._wrong(message, "Name structs only.", ("columns", position))
        for position, way in enumerate(self._options.explode):
            self._explode(way, ("explode", position))
        chosen = {name.lower() for name in self._options.columns or [name for name, _ in self._types]}
        chosen |= {way.split(".")[0].lower() for way in self._options.explode}
        for name, kind in self._types:
            self._add((name,), backquoted(name), kind, 0 if name.lower() in chosen else None)
        return self._plan

    def _explodes(self, name: str) -> bool:
        return any(way.lower() == name.lower() for way in self._options.explode)

    def _explode(self, way: str, option: tuple[str, int]) -> None:
        """The elements of one more array."""
        parts = way.split(".")
        text, walked = "", tuple[str, ...]()
        kind: _Kind | None = None
        for part in parts:
            fields = self._types if not walked else (kind.fields if kind is not None else None)
            found = next(((n, k) for n, k in fields or () if n.lower() == part.lower()), None)
            if found is None:
                hint = "An array on the way has to stand before it in `explode`." if walked else ""
                self._wrong(f"there is no column or field `{way}`", hint, option)
                return
            walked = (*walked, part.lower())
            text = f"{text}.{backquoted(found[0])}" if text else backquoted(found[0])
            kind = found[1]
            if walked in self._elements and len(walked) < len(parts):
                text, kind = self._elements[walked], kind.element
        if kind is None or kind.element is None:
            name = with_article(kind.name) if kind is not None else "nothing"
            self._wrong(f"`{way}` is {name}, and only an array has elements", "", option)
            return
        name = f"{_ELEMENT}{len(self._plan.elements)}"
        self._plan.elements.append((name, text))
        self._elements[walked] = name

    def _add(self, way: tuple[str, ...], text: str, kind: _Kind, depth: int | None) -> None:
        """The columns of one column or field.

        Args:
            way: The way to it.
            text: The expression that it is.
            kind: Its type.
            depth: How many structs it lies in; None where it stays as it is.
        """
        lower = tuple(part.lower() for part in way)
        element = self._elements.get(lower)
        if element is not None and kind.element is not None:
            text, kind = element, kind.element
        # On the way to an array that is taken apart nothing else can be done.
        on_the_way = any(found[: len(way)] == lower and len(found) > len(way) for found in self._elements)
        deep = depth is not None and (self._options.depth is None or depth < self._options.depth)
        if kind.fields and (deep or on_the_way):
            for name, field in kind.fields:
                self._add((*way, name), f"{text}.{backquoted(name)}", field, (depth or 0) + 1)
            return
        name = self._options.separator.join(way) if self._options.separator else way[-1]
        before = self._names.setdefault(name.lower(), way)
        if before is not way:
            self._wrong(
                f"there would be two columns `{name}`: `{'.'.join(before)}` and `{'.'.join(way)}`",
                "Choose another `separator`, or rename one of them before.",
                "separator",
            )
        self._plan.columns.append((name, text))

    def _wrong(self, message: str, hint: str, option: str | tuple[str | int, ...]) -> None:
        self._plan.problems.append(Finding("GB205", message, hint, option))
