"""What other options of a source mean to a stream, whose checkpoint knows the files that were read.

Spark's `FileStreamSource` knows a file by its whole path, and lists all that are there anew. A file that
isn't listed, or is too old, is passed over; one that the checkpoint doesn't know is read once it is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem_bundle import OptionChange
from gem_file.paths import has_wildcards, is_below, is_same_place, takes_all_of

if TYPE_CHECKING:
    from gem_file.reading import FileSourceOptions

_WEEK = 7 * 24 * 60 * 60 * 1000
_LIMITS = {"max_files_per_trigger": "maxfilespertrigger", "max_bytes_per_trigger": "maxbytespertrigger"}
_TAKEN = "files that it passed over and takes now are read, whenever they came"
_OLD_ONES = (
    "Spark ignores `max_file_age` with `latest_first` and a limit: files that were passed over as too old, "
    "if there are any, are read"
)
_TOO_OLD = "files that wait and are older than the newest one that was read by more than it are never read"
_EMPTY_FIRST = (
    "Run the old version once more with `--available-now`, so that nothing waits, and then accept the change."
)


def change_of_files(options: FileSourceOptions, option: str, before: Any) -> OptionChange | None:
    """What another value does to the files that wait, and to those that were passed over.

    Args:
        options: The options as they are now.
        option: The one that has another value.
        before: The value that it had, as JSON has it.

    Returns:
        None for options that don't say which files are read.
    """
    passed = {name.lower(): str(value) for name, value in options.to_spark().items()}
    if option == "path":
        return _of_path(options, passed, before)
    if option == "path_glob_filter":
        return _of_name_filter(options.path_glob_filter, before)
    if option == "recursive_file_lookup":
        return _of_folders_below(bool(before), now=bool(options.recursive_file_lookup))
    if option == "file_name_only":
        return _of_names(bool(before), now=bool(options.file_name_only))
    if option == "max_file_age":
        return _of_age(options.max_file_age, before, ignored=_ignores_age(passed))
    if option == "latest_first":
        return _of_order(passed, bool(before), now=bool(options.latest_first))
    if option in _LIMITS:
        return _of_limit(passed, _LIMITS[option], before)
    return None


def _of_path(options: FileSourceOptions, passed: dict[str, str], before: Any) -> OptionChange:
    path = options.path
    old = before if isinstance(before, str) else None  # else a text that isn't kept
    if old is not None and is_same_place(path, old):
        return OptionChange("continues", "it is the same place, written in another way")
    # Spark reads the last micro-batch's files again as tables below this; of a glob it knows none.
    base = passed.get("basepath") if has_wildcards(path) else path
    if base is not None and (old is None or not is_below(old, base)):
        return OptionChange(
            "refused",
            "the checkpoint keeps the whole paths of the files that were read, and Spark fails when they "
            "don't lie below this one" + f", which is `base_path`: `{base}`" * (base != path),
            "Give the source another id, so that it is a new one, or move the files back.",
            "what waits at the old place is never read, and all that is at the new one is read",
        )
    recursive = passed.get("recursivefilelookup", "").lower() == "true"
    if old is not None and takes_all_of(path, old, recursive=recursive):
        return OptionChange(
            "from_now_on",
            "it takes all files of the old path, of which the checkpoint knows those that were read; "
            "files that it takes besides are read, whenever they came",
        )
    return OptionChange(
        "skipped",
        "files that wait at the old path are never read where this one doesn't take them, and files that "
        "it takes are read, whenever they came, unless the checkpoint has their whole paths",
        _EMPTY_FIRST,
        by_id=bool(options.file_name_only),  # which a file keeps wherever its folder is
    )


def _of_name_filter(now: str | None, before: Any) -> OptionChange:
    if now in {None, "*"}:
        return OptionChange("continues" if before in {None, "*"} else "from_now_on", _TAKEN)
    why = "files that wait and whose names don't match are passed over"
    if before not in {None, "*"}:
        why += f", and {_TAKEN}"
    return OptionChange("skipped", why, _EMPTY_FIRST)


def _of_folders_below(before: bool, *, now: bool) -> OptionChange:
    if before == now:
        return OptionChange("continues")
    if now:
        return OptionChange("from_now_on", _TAKEN)
    why = "files that wait in folders below are passed over, but those in folders like `day=2024-01-31`"
    return OptionChange("skipped", why, _EMPTY_FIRST)


def _of_names(before: bool, *, now: bool) -> OptionChange:
    if before == now:
        return OptionChange("continues")
    if now:
        why = "files that wait or come are never read where one of their name was read in another folder"
        return OptionChange("skipped", why, "Accept the change where the same name means the same rows.")
    why = "files that were passed over, as one of their name was read in another folder, are read"
    return OptionChange("from_now_on", why)


def _of_age(now: str | None, before: Any, *, ignored: bool) -> OptionChange:
    if ignored:
        return OptionChange("continues", "Spark ignores it with `latest_first` and a limit of files or bytes")
    old, new = _milliseconds(before), _milliseconds(now)
    if old is not None and old == new:
        return OptionChange("continues")
    if old is not None and new is not None and old < new:
        return OptionChange("from_now_on", _TAKEN)
    return OptionChange("skipped", _TOO_OLD, _EMPTY_FIRST)


def _of_order(passed: dict[str, str], before: bool, *, now: bool) -> OptionChange:
    if before == now:
        return OptionChange("continues")
    if not now:
        # The limit may have been removed with it, and isn't known then.
        why = f"`max_file_age` counts, which Spark ignores with `latest_first` and a limit: {_TOO_OLD}"
        return OptionChange("skipped", why, _EMPTY_FIRST)
    if not _ignores_age(passed):
        return OptionChange("continues", "only the order within a micro-batch is another one")
    return OptionChange("from_now_on", _OLD_ONES)


def _of_limit(passed: dict[str, str], limit: str, before: Any) -> OptionChange | None:
    if not _is_latest_first(passed):
        return None
    if not _ignores_age(passed):
        why = f"without a limit `max_file_age` counts with `latest_first` too: {_TOO_OLD}"
        return OptionChange("skipped", why, _EMPTY_FIRST)
    if before is None and limit in passed:
        return OptionChange("from_now_on", _OLD_ONES)
    return None


def _ignores_age(passed: dict[str, str]) -> bool:
    return _is_latest_first(passed) and any(limit in passed for limit in _LIMITS.values())


def _is_latest_first(passed: dict[str, str]) -> bool:
    return passed.get("latestfirst", "").lower() == "true"


def _milliseconds(age: Any) -> int | None:
    """The length of a `FixedDuration`; None where that isn't kept."""
    if age is None:
        return _WEEK
    return int(age[:-2]) if isinstance(age, str) and age[:-2].isdigit() and age.endswith("ms") else None
