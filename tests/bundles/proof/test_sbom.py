"""The bill of materials: by CycloneDX's own schema, complete, and the same for the same bundle."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundler.proof.sbom import bill_of_materials
from tests.bundles.golden_wheels import KINDS, make
from tests.bundles.making import ACME, DELTA, PLUGGY, TICKS, draft, write_files

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundler.bundle.manifest import Manifest


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    write_files(tmp_path, {"ticks.yaml": TICKS})
    requires = ("gem-bundle==0.1.0", "acme-gems==1.0+editable")
    return draft(tmp_path, distributions=(PLUGGY, ACME), jars=(DELTA,), requires=requires)


def invalid(text: str) -> object:
    """What CycloneDX has against a bill; imported late as `tests.schemas` says."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    return JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)


def bill(manifest: Manifest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bill_of_materials(manifest))
    return found


@pytest.mark.parametrize("kind", list(KINDS))
def test_bills_are_valid_by_the_schema(kind: str) -> None:
    assert invalid(make(kind).sbom.decode()) is None


def test_the_schema_s_validator_sees_what_is_wrong(manifest: Manifest) -> None:
    wrong = {**bill(manifest), "serialNumber": "7"}

    assert invalid(json.dumps(wrong)) is not None


def test_everything_is_in_it_with_its_hash(manifest: Manifest) -> None:
    found = bill(manifest)

    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    assert found["metadata"]["component"]["purl"] == "pkg:pypi/ticks@0.1.0"
    assert [(c["purl"], c["hashes"][0]["content"]) for c in found["components"]] == [
        ("pkg:pypi/acme-gems@1.0%2Beditable", "bb" * 32),
        ("pkg:pypi/pluggy@1.6.0", "aa" * 32),
        ("pkg:maven/io.delta/delta-spark_4.2_2.13@4.4.0?type=jar", "cc" * 32),
    ]


def test_licences_are_expressions_where_they_are(manifest: Manifest) -> None:
    licences = [component.get("licenses") for component in bill(manifest)["components"]]

    assert licences == [
        [{"license": {"name": "Acme's own, see LICENSE"}}],
        [{"expression": "MIT"}],
        None,
    ]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("apache-2.0 or mit", {"expression": "Apache-2.0 OR MIT"}),
        ("BSD License", {"license": {"name": "BSD License"}}),
        ("A licence\n\nwith a long text", {"license": {"name": "A licence"}}),
    ],
)
def test_licences_as_distributions_say_them(manifest: Manifest, said: str, expected: dict[str, Any]) -> None:
    one = replace(manifest, distributions=(replace(PLUGGY, licence=said),), jars=())
    data = bill_of_materials(one)

    assert json.loads(data)["components"][0]["licenses"] == [expected]
    assert invalid(data.decode()) is None


def test_nothing_is_said_of_a_licence_that_isn_t_known(manifest: Manifest) -> None:
    one = replace(manifest, distributions=(replace(PLUGGY, licence=" "),), jars=())

    assert "licenses" not in bill(one)["components"][0]


def test_an_editable_installation_is_marked(manifest: Manifest) -> None:
    first, second, _ = bill(manifest)["components"]

    assert first["properties"] == [{"name": "gem-bundle:editable", "value": "true"}]
    assert "properties" not in second


def test_dependencies_are_those_that_are_known(manifest: Manifest) -> None:
    found = {entry["ref"]: entry["dependsOn"] for entry in bill(manifest)["dependencies"]}

    assert found == {
        "pkg:pypi/ticks@0.1.0": [
            "pkg:pypi/acme-gems@1.0%2Beditable",
            "pkg:maven/io.delta/delta-spark_4.2_2.13@4.4.0?type=jar",
        ],
        "pkg:pypi/acme-gems@1.0%2Beditable": ["pkg:pypi/pluggy@1.6.0"],
        "pkg:pypi/pluggy@1.6.0": [],
    }


def test_it_has_no_date_and_a_serial_number_of_the_version(manifest: Manifest) -> None:
    assert bill_of_materials(manifest) == bill_of_materials(manifest)
    assert "timestamp" not in bill(manifest)["metadata"]
    other = replace(manifest, version="0.1.0+g000000000000")
    assert bill(other)["serialNumber"] != bill(manifest)["serialNumber"]
