"""Walks the tree of an expression: its type and event time, and what is certainly wrong with it.

Imports sqlglot; `gem_bundle.expressions.analysis` imports this module when it needs a tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import exp

from gem_bundle.expressions import functions
from gem_bundle.expressions.calls import NO_TIME_FOR_WINDOWS, REFUSED, REFUSED_BY_SYNTAX, wrong_count
from gem_bundle.expressions.kinds import (
    BINARY,
    BOOLEAN,
    DATE,
    INT,
    STRING,
    TIMESTAMP,
    VOID,
    EventTimeField,
    common,
    computed,
    family,
    fits,
    is_window,
    kind_of,
)
from gem_bundle.expressions.names import VALUE_TYPES
from gem_bundle.expressions.pretty import Pretty
from gem_bundle.expressions.results import BRANCHES, Value, concatenated, operands, result_of
from gem_bundle.expressions.scope import Problem, Scope
from gem_bundle.expressions.trees import (
    UNIT_FIRST,
    bare,
    field_name,
    interval_type,
    number_type,
    parts_of,
    shape,
    type_of_cast,
    written,
)
from gem_bundle.facts import Unsteady
from gem_bundle.schema import DataType, with_article, without_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


__all__ = ["Value", "Walk", "references_in"]

UNKNOWN = Value()
_TIMES_OF_DAY = frozenset({"hour", "minute", "second"})
_SUFFIXES = frozenset({DataType("smallint"), DataType("bigint")})
_WHOLE_FIELDS = frozenset({"year", "quarter", "month", "week", "day", "dayofweek", "doy", "hour", "minute"})
_TIME_WINDOWS = frozenset({"window", "session_window"})
_CLOCKS = functions.CURRENT_TIME - {"now", "current_time"}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
}
_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.NullSafeEQ: "<=>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.And: "and",
    exp.Or: "or",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.Is: "is",
    **_ARITHMETIC,
}
_TOLD_TYPES = frozenset({"from_csv", "from_json", "from_xml", "try_variant_get", "variant_get"})
_LIKE: dict[type[exp.Expr], str] = {exp.Like: "like", exp.ILike: "ilike", exp.RegexpLike: "rlike"}


@dataclass
class Walk:
    """One walk through the tree of one expression.

    Args:
        scope: The names that it may use.
        source: The expression as it is written.
        groups: The trees of the expressions that its rows are grouped by, when they are known.
        problems: What is certainly wrong.
        aggregates: The aggregate functions outside of an ``OVER``, by name.
        distinct: Those with ``distinct``, as they are written.
        analytic: It has a function with an ``OVER``.
        generators: The functions that make several rows of one, by name.
        foreign: It has something of which nothing is known: a function that isn't Spark's, a subquery.
        row_ids: It numbers rows.
        current_time: It asks for the current time.
        clock: It asks for what Spark replaces by the time of the micro-batch: not by `now()`.
        clock_aggregated: That is among the arguments of an aggregate function.
        unsteady: Why it has another value in each query, by a function of its own or by a column.
        constant: It is nothing but a literal, maybe with a sign or a cast.
        ungrouped: The columns outside of aggregates that aren't grouped by.
        name: The name that it gives itself; empty when it gives several.
    """

    scope: Scope
    source: str = ""
    groups: Sequence[exp.Expr] | None = None
    problems: list[Problem] = field(default_factory=list)
    aggregates: list[str] = field(default_factory=list)
    distinct: list[str] = field(default_factory=list)
    analytic: bool = False
    generators: list[str] = field(default_factory=list)
    foreign: bool = False
    row_ids: bool = False
    current_time: bool = False
    clock: bool = False
    clock_aggregated: bool = False
    unsteady: Unsteady | None = None
    constant: bool = False
    ungrouped: list[str] = field(default_factory=list)
    name: str | None = None
    _variables: dict[str, Value] = field(default_factory=dict)
    _enclosing: list[str] = field(default_factory=list)
    _quiet: int = 0
    _aggregated: int = 0

    def __post_init__(self) -> None:
        self._shapes = {shape(group) for group in self.groups or ()}
        self._grouped = {name for group in self.groups or () for name in _names(group)}

    def run(self, tree: exp.Expr) -> Value:
        """Walk through the whole of an expression.

        Raises:
            RecursionError: When it is too deep.
        """
        root = bare(tree)
        while isinstance(root, exp.Alias | exp.Aliases):
            root = bare(root.this)
        self._root = root
        self.constant = _is_constant(root)
        if isinstance(tree, exp.Alias):
            self.name = tree.alias
        elif isinstance(tree, exp.Aliases):
            self.name = ""
        value = self.value(root)
        if not self.source.lstrip(" \t\n(").startswith("+"):
            return value
        # sqlglot leaves out a plus sign before a value; for Spark it makes an expression of a column.
        same = isinstance(root, exp.Binary) or family(value.type) in set("ifnvyc")
        return Value(value.type if same else None)

    def auto_name(self) -> str | None:
        """The name that the expression has without being given one; None where only Spark knows it."""
        if self.name is not None or "+" in self.source.lstrip(" \t\n(")[:1]:
            return self.name
        return Pretty(self._name_of, lambda node: Walk(self.scope).run(node).type).name(self._root)

    def _name_of(self, parts: list[str]) -> str | None:
        meaning = self.scope.resolve(parts)
        known = meaning.outcome == "column" and not meaning.fields
        return parts[-1] if known and not meaning.lateral else None

    def value(self, node: exp.Expr | None) -> Value:
        """What a part of the expression is; problems and functions are noted on the way."""
        visit = _VISITS.get(type(node))
        if node is None or visit is None:
            self._opaque(node)
            return UNKNOWN
        if not self._shapes or self._quiet or shape(node) not in self._shapes:
            return visit(self, node)
        self._quiet += 1
        found = visit(self, node)
        self._quiet -= 1
        return found

    def each(self, nodes: Iterable[exp.Expr | None]) -> list[Value]:
        """What several parts are."""
        return [self.value(node) for node in nodes]

    def _say(self, code: str, message: str, hint: str = "") -> None:
        problem = Problem(code, message, hint)
        if problem not in self.problems:
            self.problems.append(problem)

    def _opaque(self, node: exp.Expr | None) -> None:
        """Note the functions in a part in which names can't be told from keywords."""
        for call in node.find_all(exp.Anonymous) if node is not None else ():
            self._note(call.name.lower())
        self.foreign = True

    def _note(self, name: str) -> None:
        if name in functions.GENERATORS:
            self.generators.append(name)
        elif name in functions.AGGREGATES:
            self.aggregates.append(name)
        elif name not in functions.FUNCTIONS:
            self.foreign = True
        self.row_ids |= name == "monotonically_increasing_id"
        if self.unsteady is None and name in functions.UNSTEADY:
            self.unsteady = Unsteady("", name, functions.UNSTEADY[name])
        self._note_time(name)

    def _note_time(self, name: str) -> None:
        if name in functions.CURRENT_TIME:
            self.current_time = True
            self.unsteady = self.unsteady or Unsteady("", name, functions.UNSTEADY[name])
        if name in _CLOCKS:
            self._note_clock()

    def _note_clock(self) -> None:
        self.clock = True
        self.clock_aggregated |= self._aggregated > 0

    # Names

    def reference(self, parts: list[str]) -> Value:
        """What a name means, and the fields behind it."""
        variable = self._variables.get(parts[0].lower())
        if variable is not None:
            return self._fields(variable, parts[1:], parts[:1])
        inside = bool(self._enclosing)
        meaning = self.scope.resolve(parts, lateral=not inside)
        problem = self.scope.problem(parts, meaning)
        if problem is not None and problem not in self.problems:
            self.problems.append(problem)
        if meaning.column is None:
            if meaning.outcome == "value":
                self._note_time(parts[0].lower())
                kind = VALUE_TYPES.get(parts[0].lower())
                return UNKNOWN if kind is None else Value(DataType(kind))
            return Value(delay=self.scope.possible_delay, plain=True)
        column = meaning.column
        self.unsteady = self.unsteady or column.unsteady
        free = self._quiet or inside or meaning.lateral or (column.name.lower(),) in self._shapes
        if self.groups is not None and not free:
            self._check_grouped(column.name, ".".join(parts))
        attribute = Value(kind_of(column), column.delay, session=column.session, column=column, plain=True)
        before = parts[: len(parts) - len(meaning.fields)]
        return self._fields(attribute, meaning.fields, before)

    def _check_grouped(self, name: str, text: str) -> None:
        plain = parts_of(self._root) is not None
        if (name.lower() not in self._grouped or plain) and text not in self.ungrouped:
            self.ungrouped.append(text)

    def _fields(self, owner: Value, names: Sequence[str], before: Sequence[str]) -> Value:
        for position, name in enumerate(names):
            owner = self._field(owner, name, ".".join([*before, *names[:position]]))
        return owner

    def _field(self, owner: Value, name: str, text: str) -> Value:
        """A field of a struct, of all structs in an array, or a value of a map."""
        kind = owner.type
        if kind is None:
            return Value(delay=self.scope.possible_delay)
        if kind.name == "map":
            return Value(kind.parts[1])
        struct = kind.parts[0] if kind.name == "array" else kind
        if struct.name != "struct":
            if family(kind) and kind.name != "map":
                self._say("GB210", f"{_quoted(text)} is {with_article(kind)} and has no field `{name}`")
            return UNKNOWN
        found = [made for made in struct.fields if made.name.lower() == name.lower()]
        if not found:
            self.problems.append(self.scope.missing_field(text, name, [f.name for f in struct.fields]))
            return UNKNOWN
        if len(found) > 1:
            return Value(delay=self.scope.possible_delay)
        if kind.name == "array":
            return Value(_array(found[0].type))
        delay = found[0].delay if isinstance(found[0], EventTimeField) else None
        return Value(found[0].type, delay)

    def _column(self, node: exp.Expr) -> Value:
        parts = parts_of(node)
        return UNKNOWN if parts is None else self.reference(parts)

    def _dot(self, node: exp.Dot) -> Value:
        parts = parts_of(node)
        if parts is not None:
            return self.reference(parts)
        if not isinstance(node.expression, exp.Identifier):
            self._opaque(node)
            return UNKNOWN
        owner = self.value(node.this)
        if owner.type is None:
            self._check_field(node.this, node.expression.name)
        return self._field(owner, node.expression.name, "")

    def _check_field(self, owner: exp.Expr, name: str) -> None:
        """A field of a struct that is made right here, and of whose fields only the names are known."""
        made = bare(owner)
        if not isinstance(made, exp.Anonymous) or made.name.lower() != "struct":
            return
        known = [field_name(part, position + 1) for position, part in enumerate(made.expressions)]
        names = [found for found in known if found is not None]
        if len(names) == len(known) and name.lower() not in map(str.lower, names):
            self.problems.append(self.scope.missing_field("", name, names))

    def _bracket(self, node: exp.Bracket) -> Value:
        owner = self.value(node.this)
        keys = self.each(node.expressions)
        kind = owner.type
        if kind is None:
            return Value(delay=self.scope.possible_delay)
        text = keys[0].text if len(keys) == 1 else None
        if kind.name == "struct":
            return Value(delay=self.scope.possible_delay) if text is None else self._field(owner, text, "")
        if kind.name == "array" and keys and family(keys[0].type) == "s":
            known = text is not None and kind.parts[0].name == "struct"
            return self._field(owner, text or "", "") if known else UNKNOWN
        if kind.name in {"array", "map"}:
            return Value(kind.parts[-1])
        if kind != VOID:
            self._say("GB210", f"{with_article(kind)} has no elements")
        return UNKNOWN

    # Values and operators

    def _through(self, node: exp.Expr) -> Value:
        return self.value(node.this)

    def _literal(self, node: exp.Literal) -> Value:
        return Value(STRING, text=node.name) if node.is_string else _number(node.name)

    def _boolean(self, node: exp.Expr) -> Value:
        self.each(node.iter_expressions())
        return Value(BOOLEAN)

    def _like(self, node: exp.Expr) -> Value:
        values = self.each(node.iter_expressions())
        self._check_syntax(_LIKE[type(node)], values[0])
        return Value(BOOLEAN)

    def _is(self, node: exp.Is) -> Value:
        value = self.value(node.this)
        if isinstance(node.expression, exp.Boolean):
            self._check("compare", node, value, Value(BOOLEAN))
        else:
            self.value(node.expression)
        return Value(BOOLEAN)

    def _unknown(self, node: exp.Expr) -> Value:
        self.each(node.iter_expressions())
        return UNKNOWN

    def _compare(self, node: exp.Expr) -> Value:
        left, right = self.value(node.this), self.value(node.expression)
        self._check("compare", node, left, right)
        return Value(BOOLEAN)

    def _between(self, node: exp.Between) -> Value:
        value = self.value(node.this)
        for bound in (node.args["low"], node.args["high"]):
            self._check("compare", node, value, self.value(bound))
        return Value(BOOLEAN)

    def _in(self, node: exp.In) -> Value:
        value = self.value(node.this)
        for choice in node.expressions:
            self._check("in", node, value, self.value(choice))
        if node.args.get("query") is not None:
            self.foreign = True
        return Value(BOOLEAN)

    def _connector(self, node: exp.Expr) -> Value:
        # Long conditions are deep trees: their left side is followed without calls.
        kind = type(node)
        operands = []
        while isinstance(node, kind):
            operands.append(node.expression)
            node = node.this
        values = self.each([node, *operands[::-1]])
        for value in values:
            self._check_condition(value)
        return Value(BOOLEAN)

    def _not(self, node: exp.Not) -> Value:
        self._check_condition(self.value(node.this))
        return Value(BOOLEAN)

    def _check_condition(self, value: Value) -> None:
        if family(value.type) not in {"", "b", "s"}:
            kind = with_article(value.type)
            self._say("GB213", f"{kind} is no condition: `and`, `or` and `not` need booleans")

    def _arithmetic(self, node: exp.Expr) -> Value:
        left, right = self.value(node.this), self.value(node.expression)
        operator = _ARITHMETIC[type(node)]
        self._check(operator, node, left, right)
        return Value(computed(operator, *operands([left, right])))

    def _bits(self, node: exp.Expr) -> Value:
        left, right = self.value(node.this), self.value(node.expression)
        self._check("bits", node, left, right)
        both = family(left.type) + family(right.type)
        return Value(common([left.type, right.type]) if both == "ii" else None)

    def _check(self, operator: str, node: exp.Expr, left: Value, right: Value) -> None:
        if fits(operator, left.type, right.type) is False:
            sign = _SIGNS.get(type(node), type(node).__name__.lower())
            both = f"{with_article(left.type)} and {with_article(right.type)}"
            self._say("GB213", f"`{sign}` can't be applied to {both}")

    def _check_syntax(self, sign: str, value: Value) -> None:
        """Whether an operator with one operand, or a function of its own syntax, takes it."""
        kind = value.type
        if kind is not None and family(kind) and family(kind) in REFUSED_BY_SYNTAX[sign]:
            self._say("GB213", f"`{sign}` can't be applied to {with_article(kind)}")

    def _negated(self, node: exp.Expr) -> Value:
        if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
            # The sign is a part of the number: the least int is one, and its digits alone are a bigint.
            return _number(f"-{node.this.name}")
        value = self.value(node.this)
        self._check_syntax("-" if isinstance(node, exp.Neg) else "~", value)
        return Value(value.type if family(value.type) in set("ifnvyc") else None)

    def _joined_texts(self, node: exp.Expr) -> Value:
        kinds = [value.type for value in self.each([node.this, node.expression])]
        self._check_joined("`||`", kinds)
        return Value(concatenated(kinds))

    def _check_joined(self, operator: str, kinds: Sequence[DataType | None]) -> None:
        """Texts can be joined, and arrays; not a text and an array."""
        known = [kind for kind in kinds if family(kind)]
        for kind in known:
            if family(kind) in {"m", "r"}:
                self._say("GB213", f"{operator} can't be applied to {with_article(kind)}")
                return
        for left, right in pairwise(known):
            if (family(left) == "a") != (family(right) == "a"):
                both = f"{with_article(left)} and {with_article(right)}"
                self._say("GB213", f"{operator} can't be applied to {both}")
                return

    def _texts(self, node: exp.Concat) -> Value:
        self.each(node.expressions)
        return Value(STRING)

    def _cast(self, node: exp.Cast) -> Value:
        value = self.value(node.this)
        kind = type_of_cast(node.args["to"])
        if fits("cast", value.type, kind) is False:
            self._say("GB213", f"{with_article(value.type)} can't be cast to {kind}")
        if kind == TIMESTAMP and "without" in self.source.lower():
            return UNKNOWN
        # `7L` is parsed as a cast, and told from one by what it leaves out.
        suffixed = isinstance(node.this, exp.Literal) and "safe" not in node.args and kind in _SUFFIXES
        digits = value.digits if suffixed else None
        return Value(kind, text=value.text if kind == STRING else None, digits=digits)

    def _case(self, node: exp.Case) -> Value:
        subject = node.args.get("this")
        value = None if subject is None else self.value(subject)
        branches = []
        for branch in node.args.get("ifs", ()):
            condition = self.value(branch.this)
            if value is not None:
                self._check("compare", node, value, condition)
            elif family(condition.type) not in {"", "b", "s"}:
                self._say("GB213", f"{with_article(condition.type)} is no condition for a `when`")
            branches.append(self.value(branch.args.get("true")))
        if node.args.get("default") is not None:
            branches.append(self.value(node.args["default"]))
        self._check_branches("case", branches)
        return Value(common(branch.type for branch in branches))

    def _check_branches(self, name: str, values: Sequence[Value]) -> None:
        """Whether several values can be one: with a text among several they may all become texts."""
        kinds = [value.type for value in values]
        if len(kinds) > 2 and any(family(kind) in {"", "s"} for kind in kinds):
            return
        for left, right in pairwise(kinds):
            if fits("branches", left, right) is False:
                both = f"{with_article(left)} and {with_article(right)}"
                self._say("GB213", f"`{name}` can't be {both} at once")

    def _interval(self, node: exp.Interval) -> Value:
        if isinstance(node.this, exp.Literal):
            return Value(interval_type(node))
        self.value(node.this)
        return UNKNOWN

    def _subquery(self, _node: exp.Expr) -> Value:
        self.foreign = True
        return Value(delay=None)

    def _exists(self, _node: exp.Expr) -> Value:
        self.foreign = True
        return Value(BOOLEAN)

    # Functions

    def _lambda(self, node: exp.Lambda, *values: Value) -> Value:
        names = [argument.name.lower() for argument in node.expressions]
        before = self._variables
        unknown = Value(delay=self.scope.possible_delay)
        given = [*values, *[unknown] * len(names)]
        self._variables = {**before, **dict(zip(names, given, strict=False))}
        found = self.value(node.this)
        self._variables = before
        return found

    def _window(self, node: exp.Window) -> Value:
        self.analytic = True
        call = node.this
        while isinstance(call, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
            call = call.this
        name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
        if self._enclosing and self._enclosing[-1] == "aggregate":
            self._say("GB212", f"`{name}(…) over (…)` can't stand within an aggregate function")
        if name in functions.SCALAR:
            self._say("GB212", f"`{name}` is a function of one row and can't have an `over (…)`")
        self._quiet += 1
        self._enclosing.append("over")
        value = self._arguments_of(call, node.this) if name else self.value(node.this)
        self._enclosing[-1] = "partition"
        for part in node.args.get("partition_by") or ():
            self._check_order(part, self.value(part))
        if node.args.get("order") is not None:
            self.value(node.args["order"])
        self._quiet -= 1
        self._enclosing.pop()
        if name not in functions.FUNCTIONS:
            self.foreign = True
        return value

    def _ordered(self, node: exp.Ordered) -> Value:
        value = self.value(node.this)
        self._check_order(node.this, value)
        return value

    def _check_order(self, node: exp.Expr, value: Value) -> None:
        """Whether values can be put in order; Spark brings the rows of a partition together so too."""
        if without_order(value.type):
            text = node.sql(dialect="spark", normalize_functions=False)
            told = f"`{text}` is {with_article(value.type or '')}, and Spark can't put such values in order"
            self._say("GB213", told, f"Take a part of it, or make a text of it: `to_json({text})`.")

    def _arguments_of(self, call: exp.Anonymous, whole: exp.Expr) -> Value:
        """The function before an ``OVER``: it is no aggregate of the group."""
        while whole is not call:
            if isinstance(whole, exp.Filter):
                self.value(whole.expression)
            whole = whole.this
        arguments = list(call.expressions)
        self._check_call(call.name.lower(), arguments)
        if arguments and isinstance(arguments[0], exp.Distinct):
            self._say("GB212", f"`{call.name}(distinct …)` can't have an `over (…)`")
            arguments = [*arguments[0].expressions, *arguments[1:]]
        return result_of(call.name.lower(), self.each(arguments), arguments)

    def _call(self, node: exp.Anonymous) -> Value:
        name = node.name.lower()
        self._note(name)
        if name == "unix_timestamp" and not node.expressions:
            self.unsteady = self.unsteady or Unsteady("", name, functions.UNSTEADY["now"])
        arguments = list(node.expressions)
        self._check_call(name, arguments)
        if name == "unix_timestamp" and not arguments:
            self._note_clock()
        if arguments and isinstance(arguments[0], exp.Distinct):
            if name in functions.AGGREGATES:
                self.distinct.append(written(node, self.source))
            arguments = [*arguments[0].expressions, *arguments[1:]]
        if name in functions.GENERATORS and node is not self._root:
            self._say("GB212", f"`{name}` can't stand within another expression")
        if name in functions.ANALYTIC:
            self._say("GB212", f"`{name}` needs an `over (…)`")
        if name in functions.AGGREGATES:
            return self._aggregate(name, arguments)
        if name in UNIT_FIRST and len(arguments) == 3:
            arguments[0] = exp.Literal.string(arguments[0].name)
        quiet = name in _TIME_WINDOWS or name not in functions.FUNCTIONS
        self._quiet += quiet
        values = self._with_lambdas(name, arguments)
        self._quiet -= quiet
        if name in _TIME_WINDOWS or name == "window_time":
            return self._time_window(name, values)
        self._check_arguments(name, values)
        if name in {"inline", "inline_outer"}:
            return self._inlined(values)
        if name in BRANCHES:
            self._check_branches(name, values[BRANCHES[name] :])
        return result_of(name, values, arguments)

    def _check_call(self, name: str, arguments: Sequence[exp.Expr]) -> None:
        """Whether there is such a function, and whether it takes so many arguments."""
        if name not in functions.FUNCTIONS:
            told = functions.unknown(name)
            if told is not None:
                self._say("GB216", *told)
            return
        if arguments and isinstance(arguments[0], exp.Distinct):
            arguments = [*arguments[0].expressions, *arguments[1:]]
        takes = wrong_count(name, len(arguments))
        if takes is not None and not any(map(_is_several, arguments)):
            plural = "" if takes.endswith("1") else "s"
            self._say("GB215", f"`{name}` takes {takes} argument{plural}, not {len(arguments)}")

    def _inlined(self, values: Sequence[Value]) -> Value:
        """The fields of structs as columns; of several it isn't known which one is meant."""
        kind = values[0].type if values else None
        if kind is None or kind.name != "array" or len(kind.parts[0].fields) != 1:
            return Value(delay=self.scope.possible_delay)
        return self._field(Value(kind.parts[0]), kind.parts[0].fields[0].name, "")

    def _aggregate(self, name: str, arguments: list[exp.Expr]) -> Value:
        if "aggregate" in self._enclosing:
            self._say("GB212", f"`{name}` can't stand within another aggregate function")
        self._enclosing.append("aggregate")
        self._aggregated += 1
        values = self.each(arguments)
        self._aggregated -= 1
        self._enclosing.pop()
        self._check_arguments(name, values)
        return result_of(name, values, arguments)

    def _check_arguments(self, name: str, values: Sequence[Value]) -> None:
        kind = values[0].type if values else None
        if kind is not None and family(kind) and family(kind) in REFUSED.get(name, ""):
            self._say("GB213", f"`{name}` can't be applied to {with_article(kind)}")
        self._check_schema(name, values)
        if name == "concat":
            self._check_joined("`concat`", [value.type for value in values])

    def _check_schema(self, name: str, values: Sequence[Value]) -> None:
        """The type or the schema that a function is told as a text."""
        at = 2 if name in {"variant_get", "try_variant_get"} else 1
        text = values[at].text if name in _TOLD_TYPES and len(values) > at else None
        if text is None:
            return
        from gem_bundle.expressions.casts import newer_type, schema_problems

        mistakes, newer = schema_problems(text, columns=at == 1)
        for mistake in mistakes:
            said = Problem("GB213", f"`{name}`: {mistake.message}", mistake.hint, mistake.word)
            self.problems += [said] if said not in self.problems else []
        for found in newer:
            self.problems.append(Problem(*newer_type(found)))

    def _with_lambdas(self, name: str, arguments: Sequence[exp.Expr]) -> list[Value]:
        found: list[Value] = []
        for argument in arguments:
            if not isinstance(argument, exp.Lambda):
                found.append(self.value(argument))
                continue
            over = found[0].type if found else None
            element = over.parts[0] if over is not None and over.name == "array" else None
            known = name in {"transform", "filter", "exists", "forall", "any"} and element is not None
            values = [Value(element), Value(INT)] if known else []
            found.append(self._lambda(argument, *values))
        return found

    def _time_window(self, name: str, values: Sequence[Value]) -> Value:
        """Windows over time keep the watermark of a column that they are over as it is."""
        if not values:
            return UNKNOWN
        over = values[0]
        self._check_window(name, over.type)
        keeps = over.plain or over.window
        delay = over.delay if keeps else None
        if name == "window_time":
            return Value(result_of(name, values, ()).type, delay, window=keeps)
        return Value(result_of(name, values, ()).type, delay, session=name == "session_window", window=True)

    def _check_window(self, name: str, kind: DataType | None) -> None:
        if name == "window_time":
            wrong = family(kind) not in {"", "r"}
        else:
            wrong = bool(family(kind)) and family(kind) in NO_TIME_FOR_WINDOWS
        if kind is not None and (wrong or (kind.name == "struct" and not is_window(kind))):
            what = "windows" if name == "window_time" else "times"
            self._say("GB213", f"`{name}` is over {what}, and this is {with_article(kind)}")

    def _filtered(self, node: exp.Filter) -> Value:
        value = self.value(node.this)
        self._enclosing.append("aggregate")
        self.value(node.expression)
        self._enclosing.pop()
        return value

    def _within_group(self, node: exp.WithinGroup) -> Value:
        value = self.value(node.this)
        self._enclosing.append("aggregate")
        self.value(node.expression)
        self._enclosing.pop()
        return Value(value.type)

    def _extract(self, node: exp.Expr) -> Value:
        value = self.value(node.expression)
        # Of years and months Spark takes years and months, and has more words for them than one.
        if family(value.type) != "y" or node.this.name.lower() in _TIMES_OF_DAY:
            self._check_syntax("extract", value)
        whole = node.this.name.lower() in _WHOLE_FIELDS and family(value.type) in {"d", "t"}
        return Value(INT) if whole else UNKNOWN

    def _position(self, node: exp.Expr) -> Value:
        for value in self.each(node.iter_expressions()):
            self._check_syntax("position", value)
        return Value(INT)

    def _text_function(self, node: exp.Expr) -> Value:
        values = [self.value(child) for child in node.iter_expressions() if not isinstance(child, exp.Var)]
        name = type(node).__name__.lower()
        takes = wrong_count(name, len(values)) if isinstance(node, exp.Substring) else None
        if takes is not None:
            self._say("GB215", f"`{name}` takes {takes} arguments, not {len(values)}")
        for value in values[:1]:
            self._check_syntax(name, value)
        texts = family(values[0].type) == "s" if values else False
        return Value(STRING if texts else None)


def references_in(tree: exp.Expr) -> list[list[str]] | None:
    """The names of all columns in a tree; None when they can't all be told."""
    found: list[list[str]] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        parts = parts_of(node)
        if parts is not None:
            found.append(parts)
        elif type(node) not in _VISITS or isinstance(node, _WITH_OTHER_NAMES):
            return None
        elif isinstance(node, exp.Cast):
            waiting.append(node.this)
        elif isinstance(node, exp.Interval):
            waiting += [] if isinstance(node.this, exp.Literal) else [node.this]
        elif not (isinstance(node, exp.Anonymous) and node.name.lower() in UNIT_FIRST):
            waiting.extend(node.iter_expressions())
        else:
            waiting.extend(node.expressions[1 if len(node.expressions) == 3 else 0 :])
    return found


def _names(tree: exp.Expr) -> set[str]:
    """The last and the first part of each name in a tree."""
    names = references_in(tree)
    return {part.lower() for parts in names or [] for part in parts}


def _is_constant(node: exp.Expr) -> bool:
    while isinstance(node, exp.Paren | exp.Neg | exp.Cast):
        node = node.this
    return isinstance(node, exp.Literal | exp.Null | exp.Boolean)


def _quoted(text: str) -> str:
    return f"`{text}`" if text else "it"


def _is_several(argument: exp.Expr) -> bool:
    """Whether an argument may stand for several, or is given by its name."""
    return isinstance(argument, exp.Kwarg | exp.Star) or isinstance(argument.this, exp.Star)


def _array(kind: DataType) -> DataType:
    return type(kind)("array", parts=(kind,))


def _number(text: str) -> Value:
    """What is known of a number that is written out."""
    kind = number_type(text)
    whole = kind is not None and kind.name in {"int", "bigint"}
    return Value(kind, digits=len(text.lstrip("-0")) or 1 if whole else None)


def _constant(value: Value) -> Callable[[Walk, exp.Expr], Value]:
    return lambda _walk, _node: value


def _named_value(name: str, value: Value) -> Callable[[Walk, exp.Expr], Value]:
    """A value such as `current_date`, which a column of that name goes before."""

    def visit(walk: Walk, _node: exp.Expr) -> Value:
        found = walk.reference([name])
        return found if found.plain else value

    return visit


_WITH_OTHER_NAMES = (exp.Lambda, exp.Subquery, exp.Select, exp.Exists, exp.Star, exp.Extract)
_VISITS: dict[type[exp.Expr] | type[None], Callable[..., Value]] = {
    exp.Add: Walk._arithmetic,
    exp.Alias: Walk._through,
    exp.All: Walk._unknown,
    exp.And: Walk._connector,
    exp.Anonymous: Walk._call,
    exp.Any: Walk._unknown,
    exp.Between: Walk._between,
    exp.BitwiseAnd: Walk._bits,
    exp.BitwiseNot: Walk._negated,
    exp.BitwiseOr: Walk._bits,
    exp.BitwiseXor: Walk._bits,
    exp.Boolean: _constant(Value(BOOLEAN)),
    exp.Bracket: Walk._bracket,
    exp.Case: Walk._case,
    exp.Cast: Walk._cast,
    exp.Column: Walk._column,
    exp.Concat: Walk._texts,
    exp.CurrentDate: _named_value("current_date", Value(DATE)),
    exp.CurrentTime: _named_value("current_time", UNKNOWN),
    exp.CurrentTimestamp: _named_value("current_timestamp", Value(TIMESTAMP)),
    exp.CurrentUser: _named_value("current_user", Value(STRING)),
    exp.DPipe: Walk._joined_texts,
    exp.Distinct: Walk._unknown,
    exp.Div: Walk._arithmetic,
    exp.Dot: Walk._dot,
    exp.EQ: Walk._compare,
    exp.Escape: Walk._boolean,
    exp.Exists: Walk._exists,
    exp.Extract: Walk._extract,
    exp.Filter: Walk._filtered,
    exp.GT: Walk._compare,
    exp.GTE: Walk._compare,
    exp.HexString: _constant(Value(BINARY)),
    exp.ILike: Walk._like,
    exp.Identifier: Walk._column,
    exp.IgnoreNulls: Walk._through,
    exp.In: Walk._in,
    exp.IntDiv: Walk._arithmetic,
    exp.Interval: Walk._interval,
    exp.Is: Walk._is,
    exp.Kwarg: lambda walk, node: walk.value(node.expression),
    exp.LT: Walk._compare,
    exp.LTE: Walk._compare,
    exp.Lambda: Walk._lambda,
    exp.Like: Walk._like,
    exp.Literal: Walk._literal,
    exp.Mod: Walk._arithmetic,
    exp.Mul: Walk._arithmetic,
    exp.NEQ: Walk._compare,
    exp.Neg: Walk._negated,
    exp.Not: Walk._not,
    exp.Null: _constant(Value(VOID)),
    exp.NullSafeEQ: Walk._compare,
    exp.Or: Walk._connector,
    exp.Order: Walk._unknown,
    exp.Ordered: Walk._ordered,
    exp.Overlay: Walk._text_function,
    exp.Paren: Walk._through,
    exp.RawString: _constant(Value(STRING)),
    exp.RegexpLike: Walk._like,
    exp.RespectNulls: Walk._through,
    exp.Select: Walk._subquery,
    exp.SessionUser: _named_value("session_user", Value(STRING)),
    exp.Star: _constant(UNKNOWN),
    exp.StrPosition: Walk._position,
    exp.Sub: Walk._arithmetic,
    exp.Subquery: Walk._subquery,
    exp.Substring: Walk._text_function,
    exp.Trim: Walk._text_function,
    exp.TryCast: Walk._cast,
    exp.Tuple: Walk._unknown,
    exp.Where: Walk._through,
    exp.Window: Walk._window,
    exp.WithinGroup: Walk._within_group,
}
