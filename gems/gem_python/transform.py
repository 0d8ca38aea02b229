"""The transform `python`: a function of DataFrames."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator

from gem_bundle import Called, Field, GemError, Transform
from gem_bundle.diagnostics import listed_names
from gem_bundle.types import StringList
from gem_python.calling import FunctionOptions, load, user_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame


def _names(names: list[str]) -> list[str]:
    for name in names:
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise ValueError(f"outputs are named with letters, digits and underscores, not `{name}`")
        if names.count(name) > 1:
            raise ValueError(f"the output `{name}` is named twice")
    return names


class PythonOptions(FunctionOptions):
    """Options of the transform `python`."""

    outputs: Annotated[StringList, AfterValidator(_names)] = Field(
        default_factory=list,
        passed=False,
        description="The names of its outputs, when the function returns a mapping of them. Other nodes "
        "take one as `id.name`.",
        examples=[["good", "bad"]],
        change="mixed",
    )


class PythonTransform(Transform[PythonOptions]):
    """Call a Python function with the inputs as DataFrames; it returns the transformed one.

    The function gets one DataFrame for each input, in their order, and the arguments by name. It returns a
    DataFrame, or a mapping of output name to DataFrame. It builds a plan, once for each run, and must not
    collect or count: what is per row belongs into expressions or UDFs.

    In visual tools: Script, OpenAI, TextProcessing.
    """

    inputs = (1, None)
    example = {"function": "jobs:clean", "arguments": {"threshold": 0.5}}

    def apply(self, *inputs: "DataFrame") -> "DataFrame | Mapping[str, DataFrame]":
        """What the function returns.

        Raises:
            GemError: When the function doesn't exist, can't be called so, raises, or returns something
                else than it should.
        """
        options = self.options
        takes = ", ".join(self.input_names or [f"input {number + 1}" for number in range(len(inputs))])
        function = load(options, inputs, takes)
        with user_code(options.function):
            returned = function(*inputs, **options.arguments)
        problem = self._problem(returned)
        if problem:
            option = "outputs" if options.outputs else "function"
            raise GemError("GB507", f"`{options.function}` {problem}", self._wanted(), option)
        found: DataFrame | Mapping[str, DataFrame] = returned
        return found

    def called(self) -> tuple[Called, ...]:
        """The function, with the inputs."""
        options = self.options
        return (Called(options.function, tuple(self.input_names), options.arguments),)

    def order_of_inputs(self) -> "Sequence[int] | None":
        """Where the inputs come in the plan, of several only the function knows."""
        return None if len(self.input_names) > 1 else super().order_of_inputs()

    def outputs(self) -> tuple[str, ...]:
        """The declared outputs."""
        return tuple(self.options.outputs)

    def _problem(self, returned: Any) -> str:
        from pyspark.sql import DataFrame

        if returned is None:
            return "returned nothing; is a `return` missing?"
        if not self.options.outputs:
            if isinstance(returned, Mapping):
                return "returned a mapping, and the option `outputs` doesn't name its DataFrames"
            return "" if isinstance(returned, DataFrame) else f"returned {_a(returned)}"
        if not isinstance(returned, Mapping):
            return f"returned {_a(returned)}, and the option `outputs` names several"
        for name in self.options.outputs:
            if name not in returned:
                return f"did not return the output `{name}`"
        for name, value in returned.items():
            if name not in self.options.outputs:
                return f"returned `{name}`, which is not in the option `outputs`"
            if not isinstance(value, DataFrame):
                return f"returned {_a(value)} as the output `{name}`"
        return ""

    def _wanted(self) -> str:
        if not self.options.outputs:
            return "Return a Spark DataFrame."
        names = listed_names(self.options.outputs)
        return f"Return a mapping of {names} to Spark DataFrames."


def _a(value: object) -> str:
    kind = type(value)
    if kind.__module__ == "builtins":
        return f"a value of type `{kind.__name__}`"
    return f"a `{kind.__module__.partition('.')[0]}` {kind.__name__}"
