"""YAML with positions: what values mean, where they stand, and what can't be done with a file."""

import math
from typing import Any

import pytest

from gem_bundle.pipeline.document import MAX_BYTES, MAX_DEPTH, MAX_VALUES, Document, parse
from tests.core.checking import marked
from tests.counting import calls_of


def values(text: str) -> Any:
    document = parse(text, "p.yaml")
    assert document.diagnostics == []
    return document.values


def problems(text: str | bytes) -> list[tuple[str, int, int]]:
    return [(d.code, d.line, d.column) for d in parse(text, "p.yaml").diagnostics]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # Words: only YAML 1.2's, so that Norway stays a country.
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("yes", "yes"),
        ("no", "no"),
        ("NO", "NO"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("~", None),
        ("null", None),
        ("Null", None),
        ("nUll", "nUll"),
        # Integers.
        ("0", 0),
        ("-12", -12),
        ("+12", 12),
        ("007", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("-0x1F", "-0x1F"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("12:30:45", "12:30:45"),
        ("-x", "-x"),
        ("9" * 300, int("9" * 300)),
        ("9" * 301, "9" * 301),
        # Numbers.
        ("1.5", 1.5),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.5", -0.5),
        ("1e3", 1000.0),
        ("1.5E-3", 0.0015),
        (".inf", math.inf),
        ("-.Inf", -math.inf),
        (".", "."),
        ("1.2.3", "1.2.3"),
        ("1e", "1e"),
        ("1e999", math.inf),
        ("٣", "٣"),
        # Dates and times stay texts.
        ("2020-01-01", "2020-01-01"),
        ("2020-01-01T10:00:00Z", "2020-01-01T10:00:00Z"),
        # Quotes make texts of everything.
        ("'1'", "1"),
        ('"true"', "true"),
        ("''", ""),
        ('"a\\tb\\u20ac"', "a\tb€"),
        ("=", "="),
        ("a b  c", "a b  c"),
    ],
)
def test_scalars_are_read_by_the_core_schema(text: str, value: object) -> None:
    found = values(f"k: {text}\n")["k"]

    assert found == value
    assert type(found) is type(value)


def test_not_a_number() -> None:
    assert math.isnan(values("k: .nan")["k"])


def test_keys_are_texts_whatever_they_look_like() -> None:
    assert values("1: a\ntrue: b\n~: c\n2020-01-01: d\n1.50: e") == {
        "1": "a",
        "true": "b",
        "~": "c",
        "2020-01-01": "d",
        "1.50": "e",
    }


def test_blocks_and_folds() -> None:
    text = "literal: |\n  a: 1\n    b\nfolded: >-\n  select\n  1\nplain: one\n  two\nempty:\n"

    assert values(text) == {
        "literal": "a: 1\n  b\n",
        "folded": "select 1",
        "plain": "one two",
        "empty": None,
    }


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "\ufeff"])
def test_an_empty_file_has_no_values(text: str) -> None:
    document = parse(text, "p.yaml")

    assert document.values is None
    assert document.diagnostics == []


def test_a_byte_order_mark_and_windows_line_ends() -> None:
    document = parse(b"\xef\xbb\xbfa: 1\r\nb:\r\n  c: 'x'\r\n", "p.yaml")

    assert document.values == {"a": 1, "b": {"c": "x"}}
    assert (document.place(("b", "c")).line, document.place(("b", "c")).column) == (3, 6)
    assert document.place(("a",)).column == 4


# Positions


def at(document: Document, *path: str | int, key: bool = False) -> tuple[int, int]:
    place = document.place(path, key=key)
    assert place.file == "p.yaml"
    return place.line, place.column


def test_every_key_and_value_has_a_place() -> None:
    text, places = marked(
        "▶top: ▶one\nmap:\n  ▶inner:\n    - ▶first\n    - {▶a: ▶1, ▶'b c': ▶\"ü\", ▶ü: ▶2}\n"
    )
    document = parse(text, "p.yaml")

    assert [
        at(document, "top", key=True),
        at(document, "top"),
        at(document, "map", "inner", key=True),
        at(document, "map", "inner", 0),
        at(document, "map", "inner", 1, "a", key=True),
        at(document, "map", "inner", 1, "a"),
        at(document, "map", "inner", 1, "b c", key=True),
        at(document, "map", "inner", 1, "b c"),
        at(document, "map", "inner", 1, "ü", key=True),
        at(document, "map", "inner", 1, "ü"),
    ] == places


def test_a_missing_path_is_placed_at_the_last_key_that_is_there() -> None:
    document = parse("a:\n  b:\n    c: 1\n", "p.yaml")

    assert at(document, "a", "b", "x", "y") == (2, 3)
    assert at(document, "a", "b", "x", key=True) == (2, 3)
    assert at(document, "a", "b", "c", 0) == (3, 5)
    assert at(document, "x") == (1, 1)
    assert at(document) == (1, 1)


def test_the_place_in_an_anchor_is_where_the_value_is_written() -> None:
    text, places = marked("base: &base\n  x: ▶1\nuse:\n  <<: *base\n  ▶y: 2\nalso: *base\n")
    document = parse(text, "p.yaml")

    assert at(document, "use", "x") == places[0]
    assert at(document, "use", "y", key=True) == places[1]
    assert at(document, "also", "x") == places[0]


def test_the_written_text_of_a_scalar() -> None:
    document = parse("version: 1.10\nlist: [0x10]\nmap: {}\n", "p.yaml")

    assert document.text(("version",)) == "1.10"
    assert document.text(("list", 0)) == "0x10"
    assert document.text(("list", 1)) is None
    assert document.text(("map",)) is None
    assert document.text(("absent", "x")) is None
    assert parse("", "p.yaml").text(()) is None


# Anchors, aliases, merge keys


def test_aliases_repeat_values() -> None:
    text = "a: &n [1, &m {x: 2}]\nb: *n\nc: *m\nd: &n 3\ne: *n\n"

    assert values(text) == {"a": [1, {"x": 2}], "b": [1, {"x": 2}], "c": {"x": 2}, "d": 3, "e": 3}


def test_an_alias_can_be_a_key() -> None:
    assert values("a: &k word\n*k : 1\n") == {"a": "word", "word": 1}


@pytest.mark.parametrize(
    ("text", "merged"),
    [
        ("{<<: *a}", {"x": 1, "y": 2}),
        ("{<<: *a, x: 9}", {"x": 9, "y": 2}),
        ("{x: 9, <<: *a}", {"x": 9, "y": 2}),
        ("{<<: [*a, *b]}", {"x": 1, "y": 2, "z": 4}),
        ("{<<: [*b, *a]}", {"x": 1, "y": 3, "z": 4}),
        ("{<<: *a, w: 0, <<: *b}", {"w": 0, "x": 1, "y": 2, "z": 4}),
        ("{<<: {<<: *b, y: 5}, q: 6}", {"q": 6, "y": 5, "z": 4}),
        ("{<<: *nested}", {"x": 0, "y": 2, "z": 7}),
        ("{<<: {}}", {}),
        ("{'<<': 1}", {"<<": 1}),
    ],
)
def test_merge_keys(text: str, merged: dict[str, int]) -> None:
    anchors = "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nn: &nested {<<: [*a], x: 0, z: 7}\n"

    assert values(f"{anchors}m: {text}")["m"] == merged


def test_a_merge_of_something_else() -> None:
    text, places = marked("a:\n  <<: ▶5\nb: {<<: [{x: 1}, ▶[2]]}\n")
    document = parse(text, "p.yaml")

    assert [(d.line, d.column) for d in document.diagnostics] == places
    assert {d.code for d in document.diagnostics} == {"GB005"}
    assert document.values["b"] == {"x": 1}


def test_duplicate_keys_are_all_reported_and_the_first_one_counts() -> None:
    text, places = marked("a: 1\n▶a: 2\nb: {c: 1, 'd': 1, ▶\"c\": 2, ▶d: 3}\n")
    document = parse(text, "p.yaml")

    assert [(d.code, d.line, d.column) for d in document.diagnostics] == [
        ("GB003", *place) for place in places
    ]
    assert "first in line 1" in document.diagnostics[0].message
    assert document.values == {"a": 1, "b": {"c": 1, "d": 1}}


def test_an_alias_without_an_anchor() -> None:
    text, (place,) = marked("a: ▶*nowhere\nb: &later 1\n")
    document = parse(text, "p.yaml")

    assert [(d.code, d.line, d.column) for d in document.diagnostics] == [("GB002", *place)]
    assert "`&nowhere`" in document.diagnostics[0].message


# What is refused


@pytest.mark.parametrize(
    "text",
    [
        "a: ▶!!python/object/apply:os.system ['touch owned']",
        "a: ▶!!python/name:os.system",
        "a: ▶!!str 1",
        "a: ▶!ruby/object:Gem {}",
        "a: ▶!local [1]",
        "%TAG ! tag:example.com,2000:\n---\na: ▶!x 1",
        "a: ▶!<tag:yaml.org,2002:int> '5'",
    ],
)
def test_tags_are_inert_and_refused(text: str) -> None:
    clean, (place,) = marked(text)

    assert problems(clean) == [("GB007", *place)]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: [1, 2", (1, 4)),
        ("a: 'x", (1, 4)),
        ("a: b: c", (1, 5)),
        ("a:\n\t- b", (2, 1)),
        ("a: @x", (1, 4)),
        ("a: *", (1, 5)),
        ("a: 1\n b: 2", (2, 3)),
        ("a: }", (1, 4)),
        ("\t", (1, 1)),
        ("a: 1\r\nb: [\r\n", (2, 5)),
        ("[[", (1, 3)),
        ("a: |\n  x\n y", (3, 2)),
        ("%YAML 2.0\n---\na: 1", (1, 1)),
    ],
)
def test_broken_yaml_says_where(text: str, place: tuple[int, int]) -> None:
    document = parse(text, "p.yaml")

    assert [(d.code, d.line, d.column) for d in document.diagnostics] == [("GB002", *place)]
    assert document.values is None
    assert document.diagnostics[0].hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a:\n\t- b", "tabs"),
        ("a: b: c: d", "quotes"),
        ("a: *", "`*`"),
        ("columns: [*, b]", "`*`"),
        ("a: @x", "`@`"),
        ("a: `x`", "```"),
        ("a: 'it's'", "quotes of the other kind"),
        ("a: 'x' in ('x','y')", "quotes of the other kind"),
        ("a: [a-z]+", "begins with `[`"),
        ("a: {b}, c: 1", "begins with `{`"),
        ("a: {b: x in ('x','y')}", "a comma ends a value"),
        ("a: {b: x in ('x', 'y'), c: 1}", "a comma ends a value"),
        ("a:\n  {b: x in ('x','y'),\n   c: 1}", "a comma ends a value"),
        ("a: [x in ('x','y')]", "a comma ends a value"),
        ("a: {b: 'x' in ('x','y')}", "quotes of the other kind"),
        ('a: {b: "x" = y}', "quotes of the other kind"),
        ("a: {b: x[0]}", "can't have a `[`"),
        ("a: {b: '1', c: array[x, y]}", "can't have a `[`"),
        ("a: {b: x{1}}", "can't have a `{`"),
        ("a: {b: x{1,2}y}", "can't have a `{`"),
        ("a: {b: [a-z]+}", "can't have a `]`"),
        ("a: {b: x = #y}", "`#` after a space"),
        ("a: {b: x #y}\nc: d", "`#` after a space"),
        ("a: {b: 'x #', c: y: z}", "`: `"),
        ("a: {b: x: y}", "`: `"),
        ("a: {b: x: y, c: d}", "`: `"),
        ("a: {b: [x, y}", "`[` of line 1 isn't closed"),
        ("a: {b: x", "`{` of line 1 isn't closed"),
    ],
)
def test_broken_yaml_says_what_to_do(text: str, hint: str) -> None:
    (diagnostic,) = parse(text, "p.yaml").diagnostics

    assert hint in diagnostic.hint


def test_two_documents_in_one_file() -> None:
    document = parse("a: 1\n---\nb: 2\n", "p.yaml")

    assert [(d.code, d.line, d.column) for d in document.diagnostics] == [("GB002", 2, 1)]
    assert document.values == {"a": 1}
    assert values("---\na: 1\n...\n") == {"a": 1}


@pytest.mark.parametrize("text", ["? ▶[a]\n: 1", "{▶{a: 1}: 2}", "▶[a, b]: 1"])
def test_keys_that_are_no_texts(text: str) -> None:
    clean, (place,) = marked(text)

    assert problems(clean) == [("GB002", *place)]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"a: \x00", (1, 4)),
        (b"ab: 1\nb: x\x1b[31m", (2, 5)),
        ("é: 1\nb: x\x9f".encode(), (2, 5)),
        ("a: é\ufffe", (1, 5)),
        ("a: é\ud800", (1, 5)),
        (b"a: \x7f", (1, 4)),
    ],
)
def test_control_characters(text: str | bytes, place: tuple[int, int]) -> None:
    assert problems(text) == [("GB002", *place)]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"a: 1\nb: caf\xe9\n", (2, 7)),
        ("a: 1".encode("utf-16"), (1, 1)),
        ("é: \xff".encode("latin-1"), (1, 1)),
        (b"\xc3\xa9: \xc3\xa9\xff", (1, 5)),
    ],
)
def test_files_that_are_not_utf_8(text: bytes, place: tuple[int, int]) -> None:
    assert problems(text) == [("GB002", *place)]


# What is too much


def billion_laughs() -> str:
    """Twenty lines, and ten to the power of twenty values."""
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    for n in range(1, 20):
        items = ", ".join([f"*a{n - 1}"] * 10)
        lines.append(f"a{n}: &a{n} [{items}]")
    return "\n".join(lines)


def merge_keys() -> str:
    """Two lines, and fifty million values."""
    keys = ", ".join(f"k{n}: 1" for n in range(1000))
    merges = ", ".join(["*a"] * 50_000)
    return f"a: &a {{{keys}}}\nb: {{<<: [{merges}]}}\n"


def test_billion_laughs() -> None:
    found: list[tuple[str, int, int]] = []
    assert calls_of(lambda: found.extend(problems(billion_laughs()))) < 100_000
    assert [code for code, _, _ in found] == ["GB008"]


def test_a_bomb_of_merge_keys() -> None:
    found: list[tuple[str, int, int]] = []

    assert calls_of(lambda: found.extend(problems(merge_keys()))) < 50_000 * 30
    assert [code for code, _, _ in found] == ["GB008"]


@pytest.mark.parametrize(
    "text", ["a: &a [▶*a]", "a: &a {b: {c: ▶*a}}", "&a [x, {<<: ▶*a}]", "a: &a {<<: ▶*a}"]
)
def test_an_anchor_that_contains_itself(text: str) -> None:
    clean, (place,) = marked(text)

    assert problems(clean) == [("GB008", *place)]


def test_depth_is_limited() -> None:
    assert values("[" * MAX_DEPTH + "]" * MAX_DEPTH)

    for deep in ("[" * 100_000, "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)):
        assert problems(deep) == [("GB008", 1, MAX_DEPTH + 1)]
    assert problems("- " * (MAX_DEPTH + 1) + "x") == [("GB008", 1, 2 * MAX_DEPTH + 1)]


@pytest.mark.parametrize("key", ["k{}", "k", "? [k{}]\n"])
def test_depth_is_limited_through_aliases_wherever_they_stand(key: str) -> None:
    half = MAX_DEPTH // 2 + 1
    lines = [f"{key.format(0)}: &a0 {'[' * half}{']' * half}"]
    lines += [f"{key.format(n)}: &a{n} {'[' * half}*a{n - 1}{']' * half}" for n in range(1, 2000)]

    found = problems("\n".join([*lines, "last: *a1999"]))

    assert found[-1][0] == "GB008"


def test_size_is_limited() -> None:
    assert problems("a" * (MAX_BYTES + 1)) == [("GB008", 1, 1)]
    assert problems(b"a" * (MAX_BYTES + 1)) == [("GB008", 1, 1)]
    many = "[" + "1," * (MAX_VALUES + 10) + "]"
    found: list[tuple[str, int, int]] = []
    assert calls_of(lambda: found.extend(problems(many))) < MAX_VALUES * 16
    assert found[0][0] == "GB008"


def test_a_large_file_within_the_limits_is_read() -> None:
    rows = values("rows:\n" + "".join(f"  - [{n}, 'row {n}']\n" for n in range(20_000)))["rows"]

    assert rows[19_999] == [19_999, "row 19999"]
