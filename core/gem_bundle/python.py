"""User functions: how a gem gets the Python function that a pipeline file names.

Nothing here runs when a pipeline is loaded or checked: a pipeline file is data, and only a run (or a
preview, or `check --engine`) imports the user's modules.
"""

from __future__ import annotations

from typing import Any

from gem_bundle.errors import GemError


def import_function(reference: str, *, option: str = "function") -> Any:
    """The function or class that ``module:name`` means.

    The module is looked up on Python's path, where the runtime has put the pipeline file's folder
    first. Call it from `apply`, `write_stream` or `write_batch`, never from `check` or `infer`.

    Args:
        reference: ``module:name``; the name may have dots (``jobs.clean:Rules.apply``).
        option: The option that holds the reference, for the diagnostic.

    Raises:
        GemError: GB506 when the module or the name doesn't exist, GB507 when importing the module
            raises.
    """
    from importlib import import_module

    module_name, _, path = reference.partition(":")
    try:
        found: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or module_name
        if module_name == missing or module_name.startswith(f"{missing}."):
            raise GemError(
                "GB506",
                f"there is no Python module `{module_name}`",
                f"Put `{module_name.replace('.', '/')}.py` beside the pipeline file, or install the "
                "package it belongs to.",
                option,
            ) from error
        raise GemError(
            "GB507",
            f"importing `{module_name}` fails: it needs `{missing}`, which isn't installed",
            f"Install `{missing}` into the environment that runs the pipeline.",
            option,
        ) from error
    except Exception as error:
        raise GemError(
            "GB507",
            f"importing `{module_name}` fails: {type(error).__name__}: {error}",
            f"Try `python -c 'import {module_name}'` in the pipeline file's folder.",
            option,
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            from gem_bundle.diagnostics import suggest

            public = [name for name in vars(found) if callable(getattr(found, name, None))]
            raise GemError(
                "GB506",
                f"`{module_name}` has no `{path}`",
                suggest(part, [n for n in public if not n.startswith("_")], what="names there"),
                option,
            )
        found = getattr(found, part)
    if not callable(found):
        raise GemError(
            "GB506",
            f"`{reference}` is a {type(found).__name__}, not a function or a class",
            "Name something that can be called.",
            option,
        )
    return found
