"""The examples of Spark's programming guide, as pipeline files, with the verdict that the guide gives.

A file's first lines are comments: the guide's section and example, what is expected (`# expects: ok`, or
`# expects: GB301 screen` for each code and node), and where Spark 4.2 has gone on since the guide was
written, `# guide:` with what it says and why that is no longer so.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gem_bundle.check.checker import check_file
from gem_bundle.codes import CODES
from gem_bundle.pipeline.loader import LoadOptions
from gem_bundle.plugins import Registry, load_registry

FOLDER = Path(__file__).with_name("guide")
FILES = sorted(FOLDER.glob("*.yaml"))
NAME = re.compile(r"\d\d_[a-z_]+__[a-z_]+")
FINDING = re.compile(r"(GB\d{3}) (\w+)")

SECTIONS = {
    "01_window_operations": "Window Operations on Event Time",
    "02_handling_late_data": "Handling Late Data and Watermarking",
    "03_types_of_time_windows": "Types of time windows",
    "04_representation_of_time": "Representation of the time for time window",
    "05_conditions_for_watermarking": "Conditions for watermarking to clean aggregation state",
    "06_stream_static_joins": "Stream-static Joins",
    "07_stream_stream_joins": "Stream-stream Joins",
    "08_support_matrix": "Support matrix for joins in streaming queries",
    "09_streaming_deduplication": "Streaming Deduplication",
    "10_multiple_watermarks": "Policy for handling multiple watermarks",
    "11_arbitrary_stateful": "Arbitrary Stateful Operations",
    "12_unsupported_operations": "Unsupported Operations",
    "13_output_modes": "Output Modes",
    "14_output_sinks": "Output Sinks",
    "15_triggers": "Triggers",
    "16_asynchronous_progress": "Asynchronous Progress Tracking",
    "17_continuous_processing": "Continuous Processing",
}
JOIN_TYPES = ("inner", "left", "right", "full", "left_semi", "left_anti", "cross")
MODES = ("append", "update", "complete")


class NoExpectationError(ValueError):
    """A file doesn't say what is expected of it."""


def header(text: str) -> str:
    """The comment that a file begins with, each remark in one line."""
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        body = line.removeprefix("#").removeprefix(" ")
        if body.startswith("  ") and lines:
            lines[-1] += " " + body.strip()
        else:
            lines.append(body)
    return "\n".join(lines)


def remark(text: str, name: str) -> str | None:
    """What the comment says under a name such as ``guide``; None when it says nothing."""
    found = re.search(rf"^{name}: (.+)$", header(text), re.MULTILINE)
    return found[1] if found else None


def expected(text: str) -> set[tuple[str, str]]:
    """The codes and nodes that a file says will be found.

    Raises:
        NoExpectationError: When it says nothing, or something that is no expectation.
    """
    lines = re.findall(r"^expects:(.*)$", header(text), re.MULTILINE)
    words = [line.strip() for line in lines]
    if words == ["ok"]:
        return set()
    found = [FINDING.fullmatch(word) for word in words]
    pairs = {(match[1], match[2]) for match in found if match is not None}
    if not words or len(pairs) != len(words):
        raise NoExpectationError(f"`# expects: ok` or `# expects: GB301 node` is needed, not {words}")
    return pairs


@pytest.fixture(scope="module")
def registry() -> Registry:
    """The installed gems."""
    return load_registry({})


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_verdict_is_the_guides(file: Path, registry: Registry) -> None:
    checked = check_file(file, LoadOptions(environment={}), registry)

    found = {(diagnostic.code, diagnostic.node or "") for diagnostic in checked.diagnostics}
    assert found == expected(file.read_text(encoding="utf-8")), "\n".join(map(str, checked.diagnostics))
    for diagnostic in checked.diagnostics:
        assert diagnostic.line > 1, f"{diagnostic} points at nothing in the file"


@pytest.mark.parametrize(
    "text",
    [
        "pipeline: p\n",
        "# Triggers: none\npipeline: p\n# expects: ok\n",
        "# expects: fine\n",
        "# expects: GB301\n",
        "# expects: ok\n# expects: GB301 table\n",
    ],
)
def test_a_file_that_expects_nothing_is_an_error(text: str) -> None:
    with pytest.raises(NoExpectationError):
        expected(text)


def test_expectations_name_codes_that_exist() -> None:
    named = {code for file in FILES for code, _ in expected(file.read_text(encoding="utf-8"))}
    assert named - CODES.keys() == set()


def test_where_spark_has_gone_on_a_file_says_what_the_guide_says() -> None:
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        refused = any(CODES[code].severity == "error" for code, _ in expected(text) if code in CODES)
        said = remark(text, "guide")
        if said is not None:
            verdict, _, reason = said.partition("; ")
            assert verdict in {"silent", "accepts" if refused else "refuses"}, file.name
            assert len(reason) > 20, file.name
        names = re.findall(r"^(\w+): ", header(text).partition("\n")[2], re.MULTILINE)
        assert set(names) <= {"expects", "guide", "engine"}, file.name


def test_every_file_belongs_to_a_section_and_says_which_example_it_is() -> None:
    for file in FILES:
        assert NAME.fullmatch(file.stem), file.name
        assert file.stem.partition("__")[0] in SECTIONS
        title = header(file.read_text(encoding="utf-8")).partition("\n")[0]
        assert re.match(r"[A-Z][\w -]+(, [\w -]+)?: \S", title), file.name


def test_every_section_has_its_examples() -> None:
    assert {file.stem.partition("__")[0] for file in FILES} == set(SECTIONS)


def test_every_cell_of_the_join_matrix_has_a_file() -> None:
    names = {file.stem for file in FILES}
    for sides in ("static_static", "stream_static", "static_stream", "stream_stream"):
        for how in JOIN_TYPES:
            assert f"08_support_matrix__{sides}_{how}" in names


def test_every_query_type_and_every_sink_has_a_file_for_each_mode() -> None:
    names = {file.stem for file in FILES}
    queries = ("event_time_aggregation", "other_aggregation", "flat_map_updated", "flat_map_appended")
    for mode in MODES:
        for query in (*queries, "join", "other"):
            assert f"13_output_modes__{query}_{mode}" in names
        for sink in ("file", "kafka", "foreach", "foreach_batch", "console", "memory"):
            assert f"14_output_sinks__{sink}_{mode}" in names


def test_every_trigger_has_a_file() -> None:
    triggers = ("default", "processing_time", "once", "available_now", "continuous")
    assert {f"15_triggers__{trigger}" for trigger in triggers} <= {file.stem for file in FILES}
