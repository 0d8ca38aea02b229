"""The rules of gems and their options: the gem exists, its options are known, complete and right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from gem_bundle.diagnostics import Diagnostic, suggest
from gem_bundle.errors import PluginError, describe_error
from gem_bundle.pipeline.problems import MAX_PROBLEMS, Problem, cut_by_comma, problems, shown
from gem_bundle.pipeline.secrets import unmarked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path as FilePath

    from gem_bundle.diagnostics import Place
    from gem_bundle.gem import Gem, Source, Transform
    from gem_bundle.options import Options
    from gem_bundle.pipeline.document import Locator, Path
    from gem_bundle.pipeline.model import Definition, Node
    from gem_bundle.plugins import Registry
    from gem_bundle.semantics import Kind

_CODES = {"unknown": "GB204", "missing": "GB206", "value": "GB205", "together": "GB207"}


def make_gems(definition: Definition, registry: Registry) -> tuple[dict[str, Gem], list[Diagnostic]]:
    """A gem with validated options for each node that allows it, and what is wrong with the others."""
    gems: dict[str, Gem] = {}
    found: list[Diagnostic] = []
    for node in definition.nodes.values():
        gem, wrong = make_gem(node, registry, definition.locator, definition.folder, definition.within)
        found.extend(wrong)
        if gem is not None:
            gems[node.id] = gem
    return gems, found


def make_gem(
    node: Node,
    registry: Registry,
    locator: Locator,
    folder: FilePath,
    within: Callable[[str], bytes | None] | None = None,
) -> tuple[Gem | None, list[Diagnostic]]:
    """The gem of one node, or what is wrong with it.

    Args:
        node: The node.
        registry: The gems that are installed.
        locator: Where things stand.
        folder: What relative paths are relative to.
        within: What is in the files that the pipeline brings along.
    """
    path: Path = (*node.path, "gem")
    place = locator.place(path)
    if not registry.has(node.kind, node.gem):
        return None, [_unknown_gem(node, registry, locator)]
    reporter: _Reporter | None = None
    try:
        gem_class = registry.get(node.kind, node.gem).load()
        reporter = _Reporter(node, gem_class.options_type, locator)
        options = reporter.validate({"base_dir": folder, "within": within})
        gem = None if options is None else gem_class(options)
    except PluginError as error:
        reason = error.reason[:1].lower() + error.reason[1:].removesuffix(".")
        message = f"`{node.id}`: {reason}"
        return None, [Diagnostic("GB202", "error", message, node.id, path, place, error.hint)]
    except Exception as error:  # noqa: BLE001 (a gem's bug must not take the check down)
        found = reporter.found if reporter else []
        return None, [*found, _broken_gem(node, registry, locator, error)]
    found = reporter.found
    if node.kind == "transform":
        found += _check_input_count(node, gem_class, locator)
        if gem is not None:
            names = tuple(edge.name for edge in node.inputs)
            cast("Transform", gem).input_names = names
            cast("Transform", gem).node = node.id
    elif node.kind == "source" and gem is not None:
        cast("Source", gem).streaming = node.mode == "stream"
    return None if found else gem, found


def _broken_gem(node: Node, registry: Registry, locator: Locator, error: Exception) -> Diagnostic:
    path: Path = (*node.path, "gem")
    origin = registry.get(node.kind, node.gem).origin
    message = f"`{node.id}`: the gem `{node.gem}` can't take its options: {describe_error(error)}"
    hint = f"This is a bug of the gem; report it to the authors of `{origin}`."
    return Diagnostic("GB202", "error", message, node.id, path, locator.place(path), hint)


def _unknown_gem(node: Node, registry: Registry, locator: Locator) -> Diagnostic:
    path: Path = (*node.path, "gem")
    hint = registry.suggest(node.gem, registry.names(node.kind), what=f"{node.kind} gems")
    kinds: tuple[Kind, ...] = ("source", "transform", "target")
    others = [kind for kind in kinds if registry.has(kind, node.gem)]
    if others:
        hint = f"`{node.gem}` is a {' and a '.join(others)}. {hint}"
    elif registry.broken:
        names = ", ".join(sorted({str(broken.origin) for broken in registry.broken}))
        hint = f"{hint} Some plugins could not be loaded ({names}): see `gem-bundle gems`."
    message = f"`{node.id}`: there is no {node.kind} gem `{node.gem}`"
    return Diagnostic("GB201", "error", message, node.id, path, locator.place(path), hint)


def _check_input_count(node: Node, gem_class: Any, locator: Locator) -> list[Diagnostic]:
    least, most = gem_class.inputs
    count = len(node.inputs)
    if count >= least and (most is None or count <= most):
        return []
    if most is None:
        wanted = f"at least {_count(least)}"
    else:
        wanted = _count(least) if least == most else f"{least} to {most} inputs"
    if count < least:
        hint = "Write `inputs: [first, second]`."
    else:
        hint = "Put a `join` or a `union` before it." if most == 1 else "Remove some of them."
    path: Path = (*node.path, str(node.inputs[0].path[2]))
    message = f"`{node.id}`: `{node.gem}` takes {wanted}, not {count}"
    return [Diagnostic("GB105", "error", message, node.id, path, locator.place(path), hint)]


def _count(number: int) -> str:
    return "one input" if number == 1 else f"{number} inputs"


class _Reporter:
    """Validates the options of one node, and says what is wrong in terms of the file."""

    def __init__(self, node: Node, options_type: type[Options], locator: Locator) -> None:
        self._node = node
        self._type = options_type
        self._locator = locator
        self._written: dict[str, str] = {}
        self.found: list[Diagnostic] = []

    def validate(self, context: dict[str, Any]) -> Options | None:
        values = self._canonical()
        failed = bool(self.found)
        try:
            options = self._type.model_validate(values, context=context)
        except ValidationError as error:
            secret = self._type.secret_names()
            for problem in problems(error, values, self._type, secret, self._written):
                if problem.kind != "ignored":
                    self._report(problem)
            return None
        failed = failed or self._has_numbers_from_booleans(values, options)
        return None if failed else options

    def _has_numbers_from_booleans(self, values: dict[str, Any], options: Options) -> bool:
        """Report where pydantic took true for one, which is never what a pipeline file means."""
        wrong = [
            name
            for name, value in values.items()
            if isinstance(value, bool) and type(getattr(options, name)) in (int, float)
        ]
        for name in wrong:
            key = self._written[name]
            message = f"`{key}` must be a number, not {shown(values[name])}"
            self._add("GB205", message, (key,), "Write a number.")
        return bool(wrong)

    def _canonical(self) -> dict[str, Any]:
        """The options by their field names, in whichever spelling they were written."""
        values: dict[str, Any] = {}
        for key, value in self._node.options.items():
            name = self._type.canonical(key)
            if name is None:
                if len(self.found) >= MAX_PROBLEMS:
                    continue
                hint = suggest(key, self._type.model_fields, what="options")
                cut = cut_by_comma(self._node.options, key)
                if cut:
                    hint = cut
                elif "spark_options" in self._type.model_fields:
                    hint += " Options of Spark that the gem doesn't know go into `spark_options`."
                self._add("GB204", f"`{self._node.gem}` has no option `{key}`", (key,), hint, key=True)
            elif name in values:
                first = self._written[name]
                self._add(
                    "GB208",
                    f"`{first}` and `{key}` are the same option",
                    (key,),
                    "Remove one of the two.",
                    key=True,
                )
            else:
                self._written[name] = key
                values[name] = unmarked(value)
        return values

    def _report(self, problem: Problem) -> None:
        message = problem.message
        if problem.kind == "missing":
            option = problem.message.removesuffix(" is missing")
            message = f"`{self._node.gem}` needs the option {option}"
        path: Path = (*self._node.path, "options", *problem.path)
        place = None if problem.within is None else problem.place(self._locator, path)
        self._add(_CODES[problem.kind], message, problem.path, problem.hint, key=problem.at_key, place=place)

    def _add(
        self,
        code: str,
        message: str,
        below: tuple[str | int, ...],
        hint: str,
        *,
        key: bool = False,
        place: Place | None = None,
    ) -> None:
        node = self._node
        path: Path = (*node.path, "options", *below)
        # Without an `options` mapping there is nothing to point at but the node itself.
        place = place or self._locator.place(path, key=key or not below)
        message = f"`{node.id}`: {message}"
        self.found.append(Diagnostic(code, "error", message, node.id, path, place, hint))
