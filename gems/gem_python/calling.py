"""How the pipeline's own functions are found, checked and called, and what is said when they raise."""

import inspect
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gem_bundle import Field, GemError, OptionChange, Options, import_function
from gem_bundle.types import FunctionReference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


class FunctionOptions(Options):
    """The options that all gems of this family have."""

    default_change = "mixed"

    function: FunctionReference = Field(
        description="The function as `module:name`; the module is a file beside the pipeline file, or of "
        "an installed package. It is imported when the pipeline runs.",
        passed=False,
        examples=["jobs:clean"],
    )
    arguments: dict[str, Any] = Field(
        default_factory=dict,
        passed=False,
        description="Further arguments, passed by name.",
        examples=[{"threshold": 0.5}],
    )


def of_another_function(option: str) -> OptionChange | None:
    """What another function, or other arguments, mean where a target goes on.

    Args:
        option: The option that has another value.
    """
    if option not in {"function", "arguments"}:
        return None
    return OptionChange(
        "mixed",
        "whether what it writes from now on fits what is there already is up to the function",
        "If it does, accept the change; else let it write elsewhere, and give the target another id.",
    )


def load(options: FunctionOptions, given: tuple[object, ...], takes: str) -> "Callable[..., Any]":
    """The function, which can be called with what it will be given.

    Args:
        options: The options that name it.
        given: As many values as it will be given by position.
        takes: What those are, for the message.

    Raises:
        GemError: When it doesn't exist, its module can't be imported, or it takes something else.
    """
    function: Callable[..., Any] = import_function(options.function)
    check_call(function, options.function, options.arguments, given, takes)
    return function


def check_call(
    function: "Callable[..., Any]",
    reference: str,
    arguments: "Mapping[str, Any]",
    given: tuple[object, ...],
    takes: str,
    *,
    option: str = "function",
) -> None:
    """Whether a function or class takes what it will be given.

    Args:
        function: The function or class.
        reference: How the pipeline file names it.
        arguments: What it will be given by name, by the option `arguments`.
        given: As many values as it will be given by position.
        takes: What those are, for the message.
        option: The option that names it.

    Raises:
        GemError: When it doesn't.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # functions written in C often have none
        return
    try:
        signature.bind(*given, **arguments)
    except TypeError as error:
        named = ", ".join([*([takes] if takes else []), *arguments])
        name = reference.partition(":")[2]
        raise GemError(
            "GB507",
            f"`{reference}` is called with ({named}) but takes {name}{signature}: {error}",
            "Change its parameters, or the option `arguments`.",
            "arguments" if arguments else option,
        ) from error


def check_pickles(receiver: object, reference: str, option: str, hint: str) -> None:
    """Whether something that the user's code made can be sent to executors.

    Args:
        receiver: What was made.
        reference: How the pipeline file names its class or function.
        option: The option that names it.
        hint: What to do where it can't.

    Raises:
        GemError: When it can't.
    """
    from pyspark.cloudpickle import dumps

    try:
        dumps(receiver)  # type: ignore[no-untyped-call]
    except Exception as error:  # what a class does in its pickling is its own
        raise GemError(
            "GB507",
            f"`{reference}` can't be sent to executors: {type(error).__name__}: {error}",
            hint,
            option,
        ) from error


@contextmanager
def user_code(reference: str, option: str = "function") -> "Iterator[None]":
    """Turn what the user's code raises into a sentence with their file and line.

    Args:
        reference: How the pipeline file names it.
        option: The option that does.

    Raises:
        GemError: GB507, from the user's exception.
    """
    try:
        yield
    except GemError:
        raise
    except Exception as error:
        said = str(error).strip().partition("\n")[0]
        what = f"{type(error).__name__}: {said}" if said else type(error).__name__
        raise GemError("GB507", f"`{reference}` raised {what}{_place(error)}", option=option) from error


def _place(error: BaseException) -> str:
    """The last line of the user's own code on the way to an exception."""
    ours = str(Path(__file__).parent)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if file.parent != Path(ours) and not _is_library(file):
            return f" ({file}:{frame.lineno})"
    return ""


def _is_library(file: Path) -> bool:
    return not file.is_absolute() or bool({"site-packages", "dist-packages"} & set(file.parts))
