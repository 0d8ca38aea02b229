"""Pipeline files as nobody should write them, and a process that checks many of them within limits.

    python -m tests.core.hostile SEED FIRST COUNT
    python -m tests.core.hostile --files FILE...

The first checks the files FIRST to FIRST + COUNT - 1 of a seed, which `hostile_file` makes again, the second
files that are there. For each it prints the number when it begins, and a `Result` when it has ended.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import string
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from gem_bundle.check.checker import Checked, check_file
from gem_bundle.check.formats.github import as_annotation
from gem_bundle.check.formats.json import as_json
from gem_bundle.check.formats.sarif import as_sarif
from gem_bundle.check.formats.text import as_text
from gem_bundle.expressions.analysis import parsed
from gem_bundle.pipeline.loader import LoadOptions
from gem_bundle.plugins import Registry, load_registry
from gem_bundle.testing.declared.files import is_test_file

SECONDS = 2
MEGABYTES = 300
# When a check doesn't come back at all: far beyond what is allowed, and the machine still lives.
HANGS = 30
TOO_MUCH = 2_000_000_000

Maker = Callable[[random.Random], bytes]
MAKERS: dict[str, Maker] = {}
EXAMPLES = Path(__file__).parents[2] / "examples"


def maker(function: Maker) -> Maker:
    """Register a way to make a hostile file."""
    MAKERS[function.__name__] = function
    return function


def hostile_file(seed: int, index: int) -> tuple[str, bytes]:
    """The kind and the contents of one file; the kinds take turns."""
    name = list(MAKERS)[index % len(MAKERS)]
    return name, MAKERS[name](random.Random(f"{seed}:{index}"))


@cache
def bases() -> list[bytes]:
    """Files that are right, or nearly."""
    from tests.core.check.test_fuzz import PIPELINE

    pipelines = [file for file in sorted(EXAMPLES.rglob("*.yaml")) if not is_test_file(file)]
    return [PIPELINE.encode(), *(file.read_bytes() for file in pipelines)]


@cache
def gems() -> list[tuple[str, str, dict[str, Any], tuple[str, ...]]]:
    """Kind, name, example options and names of all options of the installed gems."""
    return [
        (entry.kind, entry.name, dict(entry.load().example), tuple(entry.load().options_type.model_fields))
        for entry in load_registry({})
    ]


def size(rng: random.Random, most: int) -> int:
    """A number up to a limit, as often between 10 and 100 as between 1,000 and 10,000."""
    return int(10 ** rng.uniform(0, len(str(most)) - 1)) if rng.random() < 0.9 else most


# Bytes

ODD = (
    b"\x00|\t|\xff|&a |*common|<<: |${|}|[|- |: |!x |!!python/object:os.system |\n|{|'|\"|>|%|---\n|...\n|#|? |"
    b"\xef\xbb\xbf|\r|1e999|.nan|~|\xe2\x80\xa8|\xc2\x85|\xed\xa0\x80|\xf4\x8f\xbf\xbf|$${|${env:X}|${topic}|"
    b"${secret:a/b}|\\ud800|\\U0010ffff|\x1b[2J|\xe2\x80\xae"
).split(b"|")


@maker
def changed_bytes(rng: random.Random) -> bytes:
    text = rng.choice(bases())
    for _ in range(size(rng, 20)):
        at = rng.randrange(len(text) + 1)
        piece = rng.choice(ODD) if rng.random() < 0.7 else rng.randbytes(rng.randrange(8))
        text = text[:at] + piece + text[at + rng.choice((0, 0, 1, 5, 40, 400)) :]
    return text


@maker
def moved_pieces(rng: random.Random) -> bytes:
    text = rng.choice(bases())
    start, end, at = [*sorted(rng.randrange(len(text) + 1) for _ in range(2)), rng.randrange(len(text) + 1)]
    piece = text[start:end]
    times = min(size(rng, 10_000), 3_000_000 // (len(piece) + 1))
    return text[:at] + piece * times + text[at:]


@maker
def any_bytes(rng: random.Random) -> bytes:
    count = size(rng, 100_000)
    kinds: list[Callable[[], bytes]] = [
        lambda: rng.randbytes(count),
        lambda: bytes(rng.choices(b"{}[],:&*!|>'\"%@`-?# \n\t$ab01", k=count)),
        lambda: b"".join(rng.choices(ODD, k=count // 4)),
        lambda: rng.choice(bases()).decode().encode(rng.choice(("utf-16", "utf-32", "utf-8-sig", "utf-7"))),
        lambda: (
            rng.choice((b"\n", b" ", b"\t", b"-", b"- ", b"? ", b"a: ", b"{", b"[", b'"', b"&a ")) * count
        ),
        lambda: rng.choice(bases())[: rng.randrange(1000)],
    ]
    return rng.choice(kinds)()


# Structure

WORDS = (
    "gem",
    "input",
    "inputs",
    "options",
    "mode",
    "trigger",
    "pipeline",
    "sources",
    "targets",
    "<<",
    "x-y",
)
STRANGE: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        -1,
        1e308,
        float("inf"),
        float("nan"),
        10**30,
        "",
        " ",
        "${topic}",
        "${nope}",
        "${",
        "$${x}",
    ),
    *(
        "${secret:a/b}",
        "x${sizes}",
        "${env:HOME}",
        "*",
        "a.b.c",
        "..",
        "/",
        "a\nb",
        "\x07",
        "\u202e",
        "\ufffd",
    ),
    *([], {}, [[]], [None], {"": ""}, {"a": {}}),
)


def places(tree: Any) -> list[tuple[Any, Any]]:
    """All that is in a tree, as containers and keys."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        owner = waiting.pop()
        pairs = (
            owner.items() if isinstance(owner, dict) else enumerate(owner) if isinstance(owner, list) else ()
        )
        for key, value in pairs:
            found.append((owner, key))
            waiting.append(value)
    return found


def as_file(rng: random.Random, tree: Any) -> bytes:
    if rng.random() < 0.3:
        return json.dumps(tree).encode()
    flow = rng.choice((None, True, False))
    return yaml.safe_dump(tree, allow_unicode=True, sort_keys=False, default_flow_style=flow).encode(
        "utf-8", "surrogatepass"
    )


def a_tree(rng: random.Random) -> Any:
    return yaml.safe_load(rng.choice(bases()))


@maker
def changed_structure(rng: random.Random) -> bytes:
    tree = a_tree(rng)
    for _ in range(size(rng, 30)):
        everything = places(tree)
        if not everything:
            break
        parent, key = rng.choice(everything)
        what = rng.random()
        if what < 0.4:
            # What is shared would change for all files after this one, or end up within itself.
            parent[key] = deepcopy(rng.choice(STRANGE))
        elif what < 0.5:
            other, name = rng.choice(everything)
            parent[key] = json.loads(json.dumps(other[name], default=str))
        elif what < 0.6:
            del parent[key]
        elif what < 0.7:
            parent[key] = [parent[key]] if rng.random() < 0.5 else {"x": parent[key]}
        elif isinstance(parent, dict):
            parent[rng.choice(WORDS) if what < 0.85 else rng.choice(everything)[1]] = parent.pop(key)
    return as_file(rng, tree)


@maker
def deep(rng: random.Random) -> bytes:
    depth = size(rng, 1_000_000)
    opening, closing = rng.choice(
        [("[", "]"), ("{a: ", "}"), ("[{a: ", "}]"), ("- ", ""), ("? ", ""), ("a:\n", "")]
    )
    if opening == "a:\n":
        depth = min(depth, 2000)
        value = "".join(f"\n{' ' * level}a:" for level in range(6, depth))
    else:
        value = opening * depth + (closing * depth if rng.random() < 0.8 else "")
    place = rng.choice(
        ["sources: {a: {gem: rate, options: %s}}", "%s", "parameters: {a: %s}", "x-a: %s", "? %s\n: b"]
    )
    return f"pipeline: p\n{place % value}\ntargets: {{t: {{gem: noop, input: a}}}}\n".encode()[:5_000_000]


# Numbers


@maker
def numbers(rng: random.Random) -> bytes:
    digits = "".join(rng.choices("0123456789", k=size(rng, 1_000_000)))
    forms = [
        "%s",
        "-%s",
        "0x%s",
        "0o%s",
        ".%s",
        "%s.5",
        "1e%s",
        "-1e-%s",
        "%s days",
        "%s",
        "1.%s",
        "'%s'",
        "%sm",
    ]
    forms += [
        "1." * 20_000 + "%s!",
        "interval %s year",
        "%s minutes %s seconds",
        "+%s ms",
        "%sg",
        "1_%s",
        "${n}",
    ]
    text = rng.choice(forms).replace("%s", digits)
    tree = a_tree(rng)
    leaves = [(p, k) for p, k in places(tree) if not isinstance(p[k], dict | list)]
    parent, key = rng.choice(leaves)
    if rng.random() < 0.5:
        leaves = [
            (p, k) for p, k in leaves if k in {"version", "delay", "duration", "processing_time", "num_rows"}
        ]
        parent, key = rng.choice(leaves or [(parent, key)])
    parent[key] = "@@"
    return as_file(rng, tree).replace(b'"@@"', b"@@").replace(b"'@@'", b"@@").replace(b"@@", text.encode())


# Aliases


@maker
def bombs(rng: random.Random) -> bytes:
    width, levels = rng.randint(2, 12), rng.randint(2, 40)
    kind = rng.randrange(6)
    lines = ["x-0: &a0 {k0: [lol, lol], gem: rate}"]
    for level in range(1, levels):
        before = f"*a{level - 1}"
        several = ", ".join([before] * width)
        one = {
            0: f"[{several}]",
            1: "{" + ", ".join(f"k{n}: {before}" for n in range(width)) + "}",
            2: f"{{<<: [{several}], k{level}: 1}}",
            3: f"{{<<: {before}, k{level}: {before}}}",
            4: f"{{? {before} : {before}}}",
            5: "[" + ", ".join([f"*a{rng.randrange(level)}" for _ in range(width)]) + "]",
        }[kind]
        lines.append(f"x-{level}: &a{level} {one}")
    lines.append(rng.choice(["x-z: &z [*z]", "x-z: &z {<<: *z}", "x-z: *nowhere", ""]))
    last = f"*a{levels - 1}"
    lines.append(
        rng.choice(
            [
                f"sources: {{a: {{gem: rows, options: {{rows: {last}}}}}}}",
                f"sources: {last}",
                f"sources: {{<<: {last}}}",
                f"parameters: {{a: {last}}}\nspark: {{a: '${{a}}'}}",
                f"{last} : x",
            ]
        )
    )
    return ("pipeline: p\n" + "\n".join(lines) + "\ntargets: {t: {gem: noop, input: a}}\n").encode()


@maker
def references(rng: random.Random) -> bytes:
    length, times, uses = size(rng, 100_000), size(rng, 10_000), size(rng, 1_000)
    value = rng.choice(
        [f'"{"x" * length}"', "[" + "1, " * min(length, 30_000) + "1]", "{a: {b: c}}", "'${env:HOME}'"]
    )
    text = rng.choice(
        ["${p}", "${p} ", "$${", "${", "${p", "${" * 20 + "}" * 20, "${env:NO}", "${secret:a/b}", "${q}"]
    )
    # Files that are far too long are refused at once, and would only take memory here.
    times = min(times, 1_500_000 // (len(text) * uses) + 1)
    options = ", ".join(f'k{n}: "{text * times}"' for n in range(uses))
    return (
        f"pipeline: p\nparameters: {{p: {value}}}\n"
        f"sources: {{a: {{gem: {rng.choice(('kafka', 'file', 'rate'))}, options: {{{options}}}}}}}\n"
        "targets: {t: {gem: noop, input: a}}\n"
    ).encode()


# Names


def a_name(rng: random.Random, length: int) -> str:
    alphabet = rng.choice(
        [
            string.ascii_lowercase,
            "a_",
            "_",
            "aA0",
            ".",
            "äöü中文",
            "\u202e\u200b\u0301a",
            "🎉",
            "`'\"",
            "${}",
            " ",
            "\\",
            "%",
        ]
    )
    return "".join(rng.choices(alphabet, k=length))


@maker
def long_names(rng: random.Random) -> bytes:
    name, other = a_name(rng, size(rng, 1_000_000)), a_name(rng, size(rng, 100_000))
    tree = a_tree(rng)
    for _ in range(rng.randint(1, 4)):
        parent, key = rng.choice(places(tree))
        if isinstance(parent, dict) and rng.random() < 0.6:
            parent[rng.choice((name, f"{key}{name}", f"{key}.{name}"))] = parent.pop(key)
        else:
            parent[key] = rng.choice((name, other, [name, other], {name: other}, f"{parent[key]}{name}"))
    return as_file(rng, tree)


@maker
def control_characters(rng: random.Random) -> bytes:
    tree = a_tree(rng)
    for _ in range(size(rng, 20)):
        parent, key = rng.choice(places(tree))
        code = rng.choice(
            [*range(32), 127, 0x85, 0x9B, 0x200B, 0x202E, 0x2028, 0xD800, 0xDFFF, 0xFEFF, 0xFFFF, 0x1F389]
        )
        text = f"a{chr(code)}[2Jb\n::error::c"
        if isinstance(parent, dict) and rng.random() < 0.5:
            parent[text] = parent.pop(key)
        else:
            parent[key] = text
    # JSON writes each of them as an escape, which YAML reads between double quotes.
    return json.dumps(tree).encode() if rng.random() < 0.7 else as_file(rng, tree)


# Many


@maker
def many(rng: random.Random) -> bytes:
    count = size(rng, 30_000)
    gem = rng.choice(
        ["filter", "select", "union", "join", "sql", "watermark", "nope", "aggregate", "deduplicate"]
    )
    options = {
        "filter": "{condition: value > 1 and timestamp is not null}",
        "select": "{columns: [timestamp, value, value + 1 as v]}",
        "join": "{how: left, condition: a.value = b.value}",
        "sql": "{query: select * from a}",
        "watermark": "{column: timestamp, delay: 1 hour}",
        "aggregate": "{group_by: [value], aggregates: {value: count(*), timestamp: max(timestamp)}}",
    }.get(gem, "{}")
    before: Callable[[int], str] = rng.choice(
        [
            lambda n: f"n{n - 1}",
            lambda n: f"n{n + 1}",
            lambda n: "n0",
            lambda n: f"m{n}",
            lambda n: f"n{rng.randrange(count + 1)}",
            lambda n: f"n{n // 2}",
        ]
    )
    two = gem in {"join", "union"}
    nodes = []
    for n in range(1, count + 1):
        inputs = f"inputs: {{a: {before(n)}, b: {before(n)}}}" if two else f"inputs: {{a: {before(n)}}}"
        nodes.append(f"  n{n}: {{gem: {gem}, {inputs}, options: {options}}}")
    targets = [
        f"  t{n}: {{gem: noop, input: n{n}}}" for n in range(max(1, count // rng.choice((1, 10, count))))
    ]
    source = "sources: {n0: {gem: rate}}"
    return "\n".join(["pipeline: p", source, "transforms:", *nodes, "targets:", *targets, ""]).encode()


@maker
def many_keys(rng: random.Random) -> bytes:
    count = size(rng, 40_000)
    keys = ", ".join(f"{rng.choice('kaz')}{rng.randrange(10 * count)}: 1" for _ in range(count))
    items = ", ".join(rng.choices(["a", "value", "value + 1 as v", "'x'", "1", "h:1"], k=count))
    which = rng.choice(
        [
            f"spark: {{{keys}}}",
            f"parameters: {{{keys}}}\nprofiles: {{p: {{{keys}}}}}",
            f"{keys.replace(', ', chr(10))}",
            f"transforms: {{a: {{gem: select, input: s, options: {{columns: [{items}]}}}}}}",
            f"transforms: {{a: {{gem: rename, input: s, options: {{columns: {{{keys}}}}}}}}}",
            f"transforms: {{a: {{gem: drop, input: s, options: {{columns: [{items}]}}}}}}",
            f"transforms: {{a: {{gem: union, inputs: [{', '.join(['s'] * count)}]}}}}",
            f"transforms: {{a: {{gem: aggregate, input: s, options: {{group_by: [{items}], {keys}}}}}}}",
            f"transforms: {{a: {{gem: python, input: s, options: {{function: 'a:b', arguments: {{{keys}}}}}}}}}",
        ]
    )
    return (
        f"pipeline: p\nsources: {{s: {{gem: rate, options: {{{keys if rng.random() < 0.2 else ''}}}}}}}\n{which}\n"
        "targets: {t: {gem: noop, input: s}}\n"
    ).encode()


# Options

PIECES = (
    *(
        " ",
        "1",
        "a",
        "a,",
        ",",
        ".",
        "a.",
        "(",
        ")",
        "((",
        "[",
        "<",
        ">",
        "{",
        "}",
        "'",
        '"',
        "`",
        "``",
        "\\",
        "\n",
    ),
    *(
        "a int, ",
        "a struct<",
        "array<",
        "map<int,",
        "decimal(1,",
        "a: ",
        "1 day ",
        "1 day",
        "- ",
        "--",
        "/*",
        "*/",
    ),
    *(
        "not ",
        "a and ",
        "a or ",
        "a + ",
        "a.b.",
        "f(",
        "case when a then ",
        "select ",
        "cast(a as ",
        "interval 1 day + ",
    ),
    *(
        "a = b and ",
        "(select ",
        "h:1,",
        "1m ",
        "1:",
        "2024-",
        "T00:00",
        "%",
        "_",
        "-",
        "+1",
        "$",
        "\u00df",
        "\u0130",
    ),
)


@maker
def long_options(rng: random.Random) -> bytes:
    kind, name, example, names = rng.choice(gems())
    head = rng.choice(("", "1", "a", "(", "a int, ", "1 day", "interval ", "select ", "h:1", '{"', "'", "10"))
    piece = rng.choice(PIECES) + (rng.choice(PIECES) if rng.random() < 0.4 else "")
    text = head + piece * size(rng, 300_000) + rng.choice(("", "x", "!", "1", ")", " ", "'", "m"))
    text = text[: rng.choice((1_000, 20_000, 49_000, 49_000, 1_000_000))]
    option = rng.choice(names or ("none",))
    value: Any = rng.choice(
        [text, text, text, [text], [text] * 3, {"a": text}, {text: "a"}, {"column": text}]
    )
    options = {**example, option: value}
    node: dict[str, Any] = {"gem": name, "options": options}
    tree: dict[str, Any] = {
        "pipeline": "p",
        "sources": {"s": {"gem": "rate"}},
        "transforms": {},
        "targets": {},
    }
    if kind != "source":
        node |= {"inputs": {"s": "s", "p": "s"}} if name in {"join", "union"} else {"input": "s"}
    tree[f"{kind}s"]["n"] = node
    tree["targets"]["t"] = {"gem": "noop", "input": "n" if kind == "transform" else "s"}
    return json.dumps(tree, ensure_ascii=rng.random() < 0.5).encode()


# What every check must keep to


def verify(checked: Checked, text: bytes) -> None:
    """The diagnostics are whole, and every format can write them down."""
    from gem_bundle.codes import CODES

    lines = text.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    count = len(lines.splitlines()) + 1
    for diagnostic in checked.diagnostics:
        assert diagnostic.code in CODES
        assert diagnostic.severity in {"error", "warning", "note"}
        assert diagnostic.message
        assert diagnostic.line <= count
        assert str(diagnostic).replace("\n", "").isprintable()
    assert (checked.plan is None) or checked.ok


def write_down(checked: Checked) -> float:
    """Every format can take the diagnostics, and what it makes of them can be printed.

    Returns:
        The seconds that the slowest of them took: a check writes one.
    """
    found = checked.diagnostics
    formats: list[Callable[[], list[str]]] = [
        lambda: [as_text(diagnostic) for diagnostic in found],
        lambda: [as_json(found, ok=checked.ok)],
        lambda: [as_sarif(found, ok=checked.ok)],
        lambda: [as_annotation(diagnostic) for diagnostic in found],
    ]
    took = []
    for write in formats:
        started = time.process_time()
        texts = write()
        took.append(time.process_time() - started)
        for text in texts:
            text.encode("utf-8")
    assert not any(set("\r\n") & set(line) for line in texts)
    return max(took)


class Result(NamedTuple):
    """What one check needed."""

    index: int
    kind: str
    seconds: float
    megabytes: float
    diagnostics: int
    problem: str = ""


def timed_check(file: Path, options: LoadOptions, registry: Registry) -> tuple[Checked, float]:
    """A check, and how many seconds of the processor it took."""
    started = time.process_time()
    checked = check_file(file, options, registry)
    return checked, time.process_time() - started


def peak_megabytes() -> float:
    """The most memory of this process since it started: the interpreter, its imports, and all checks so far.

    Linux gives the peak that `resource` knows of from a process to those it starts, programs of their own
    too, so that a small one seems to be as large as the one that started it.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (peak,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(peak.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1 << 20 if sys.platform == "darwin" else 1 << 10
    )


def run(files: Iterable[tuple[str, bytes]], first: int, folder: Path) -> None:
    """Check files one after the other, and print a result for each as a line of JSON.

    Args:
        files: Kind and contents.
        first: The number of the first one.
        folder: A place for the file that is checked.
    """
    registry = load_registry()
    file = folder / "p.yaml"
    options = LoadOptions(environment={"HOST": "h"})
    for index, (kind, text) in enumerate(files, first):
        file.write_bytes(text)
        print(index, flush=True)
        signal.alarm(HANGS)
        started = time.process_time()
        problem = ""
        found = 0
        try:
            checked, seconds = timed_check(file, options, registry)
            if seconds > SECONDS:
                # What else the machine did in the meantime counts too: the second time may be the right one.
                parsed.cache_clear()
                checked, again = timed_check(file, options, registry)
                seconds = min(seconds, again)
            signal.alarm(HANGS)
            seconds += write_down(checked)
            verify(checked, text)
            found = len(checked.diagnostics)
        except BaseException as error:  # noqa: BLE001 (whatever it is, it is what we are looking for)
            seconds = time.process_time() - started
            problem = f"{type(error).__name__}: {str(error)[:300]}"
        signal.alarm(0)
        print(json.dumps(Result(index, kind, seconds, peak_megabytes(), found, problem)), flush=True)


def main(arguments: Sequence[str], folder: Path) -> None:
    """Check what the command line names."""
    if arguments[0] == "--files":
        run(((Path(name).stem, Path(name).read_bytes()) for name in arguments[1:]), 0, folder)
    else:
        seed, first, count = map(int, arguments)
        run((hostile_file(seed, index) for index in range(first, first + count)), first, folder)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (TOO_MUCH, TOO_MUCH))
    os.chdir(Path(__file__).parents[2])
    with tempfile.TemporaryDirectory() as place:
        main(sys.argv[1:], Path(place))
