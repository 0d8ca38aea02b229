"""What of a project goes into a bundle, and what is said where something can't."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from gem_bundle.changes.functions import function_hash
from gem_bundle.check.checker import check_definition
from gem_bundle.pipeline.loader import LoadOptions
from gem_bundler.bundle.contents import check_dependencies
from gem_bundler.bundle.imports import imports_of
from gem_bundler.bundle.inside import Installed
from gem_bundler.bundle.model import LockedDistribution
from tests.bundles.making import CLEAN, JOBS, TICKS, built, collected, load, problems, write_files

if TYPE_CHECKING:
    from collections.abc import Iterator


def codes(folder: Path, *names: str) -> list[str]:
    return [diagnostic.code for diagnostic in problems(folder, *names)]


def brings(name: str, *modules: str) -> LockedDistribution:
    return LockedDistribution(name, "1.0", f"{name}-1.0-py3-none-any.whl", "00" * 32, modules=modules)


# What is taken


def test_a_pipeline_file_goes_in_byte_for_byte(tmp_path: Path) -> None:
    text = TICKS.replace("\n", "\r\n") + "# a comment at the end"
    write_files(tmp_path, {"jobs/ticks.yaml": text})

    contents = collected(tmp_path, "jobs/ticks.yaml")

    assert contents.pipelines == {"jobs/ticks.yaml": text.encode()}
    assert contents.files == {}
    assert contents.diagnostics == ()


def test_a_module_that_a_pipeline_names_is_taken_with_what_it_imports(tmp_path: Path) -> None:
    jobs = "import json\nfrom rules import limit\n\ndef clean(ticks):\n    import late\n"
    write_files(
        tmp_path,
        {
            "ticks.yaml": CLEAN,
            "jobs.py": jobs,
            "rules.py": "limit = 1\n",
            "late.py": "import jobs\n",
            "unused.py": "import nothing\n",
        },
    )

    contents = collected(tmp_path)

    assert sorted(contents.files) == ["jobs.py", "late.py", "rules.py"]
    assert contents.files["jobs.py"] == jobs.encode()
    assert contents.modules == ("jobs", "late", "rules")
    assert contents.imports == ()
    assert contents.diagnostics == ()


@pytest.mark.parametrize(
    "target",
    [
        '{gem: foreach_batch, input: ticks, options: {function: "jobs:clean"}}',
        '{gem: foreach, input: ticks, options: {function: "jobs:Writer.make"}}',
    ],
)
def test_targets_name_modules_too(tmp_path: Path, target: str) -> None:
    text = f"pipeline: ticks\nsources:\n  ticks: {{gem: rate}}\ntargets:\n  out: {target}\n"
    write_files(tmp_path, {"ticks.yaml": text, "jobs.py": JOBS})

    assert collected(tmp_path).modules == ("jobs",)


def test_a_package_is_taken_whole(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "ticks.yaml": CLEAN.replace("jobs:clean", "acme.jobs:clean"),
            "acme/__init__.py": "",
            "acme/jobs.py": "from . import text\nfrom .deep.rules import limit\nfrom acme.deep import rules\n",
            "acme/text.py": "",
            "acme/deep/__init__.py": "",
            "acme/deep/rules.py": "limit = 1\n",
            "acme/words.json": "{}",
            "acme/not_reached.py": "import nowhere_at_all\n",
            "acme/__pycache__/jobs.cpython-311.pyc": b"\0",
            "acme/.hidden": "",
        },
    )

    contents = collected(tmp_path)

    assert sorted(contents.files) == [
        "acme/__init__.py",
        "acme/deep/__init__.py",
        "acme/deep/rules.py",
        "acme/jobs.py",
        "acme/not_reached.py",
        "acme/text.py",
        "acme/words.json",
    ]
    assert contents.imports == ()
    assert contents.diagnostics == ()


def test_modules_lie_beside_the_pipeline_file(tmp_path: Path) -> None:
    write_files(tmp_path, {"jobs/ticks.yaml": CLEAN, "jobs/jobs.py": JOBS, "jobs.py": "raise SystemExit"})

    contents = collected(tmp_path, "jobs/ticks.yaml")

    assert contents.files == {"jobs.py": JOBS.encode()}


def test_a_link_within_the_project_is_followed(tmp_path: Path) -> None:
    write_files(tmp_path, {"ticks.yaml": CLEAN, "lib/jobs.py": JOBS})
    (tmp_path / "jobs.py").symlink_to("lib/jobs.py")

    assert collected(tmp_path).files == {"jobs.py": JOBS.encode()}


def test_a_link_to_a_folder_around_it_ends(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {"ticks.yaml": CLEAN.replace("jobs:", "acme:"), "acme/__init__.py": JOBS},
    )
    (tmp_path / "acme" / "again").symlink_to(tmp_path / "acme", target_is_directory=True)

    assert collected(tmp_path).files == {"acme/__init__.py": JOBS.encode()}


def test_a_project_can_be_reached_by_a_link(tmp_path: Path) -> None:
    write_files(tmp_path / "real", {"ticks.yaml": CLEAN, "jobs.py": JOBS})
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)

    contents = collected(tmp_path / "link")

    assert list(contents.pipelines) == ["ticks.yaml"]
    assert list(contents.files) == ["jobs.py"]
    assert contents.diagnostics == ()


def test_every_profile_s_functions_are_taken(tmp_path: Path) -> None:
    head = "parameters: {rule: jobs:clean}\nprofiles:\n  prod: {rule: strict:clean}\n"
    write_files(
        tmp_path,
        {
            "ticks.yaml": head + CLEAN.replace("jobs:clean", "${rule}"),
            "jobs.py": JOBS,
            "strict.py": JOBS,
        },
    )

    assert collected(tmp_path).modules == ("jobs", "strict")


@pytest.mark.parametrize("reference", ["${rule}", "${env:NO_SUCH_RULE}", "${env:RULE}"])
def test_a_function_that_is_known_at_the_start_only_is_a_warning(
    tmp_path: Path, reference: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RULE", "jobs:clean")
    text = "parameters: {rule: {type: string}}\n" + CLEAN.replace("jobs:clean", reference)
    write_files(tmp_path, {"ticks.yaml": text, "jobs.py": JOBS})

    (found,) = problems(tmp_path)

    assert (found.code, found.severity, found.node) == ("GB635", "warning", "clean")
    assert found.line == 6


AVRO = """\
pipeline: clicks
mode: batch
parameters: {schema: one.avsc}
profiles:
  prod: {schema: ../shared/two.avsc}
sources:
  clicks: {gem: rows, options: {schema: "value binary", rows: []}}
transforms:
  read: {gem: from_avro, input: clicks, options: {column: value, schema_file: "${schema}"}}
targets:
  screen: {gem: noop, input: read}
"""
SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "NAME", "type": "int"}]}'


def test_files_with_texts_are_taken_for_every_profile_and_read_in_the_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "jobs/clicks.yaml": AVRO,
        "jobs/one.avsc": SCHEMA.replace("NAME", "one"),
        "shared/two.avsc": SCHEMA.replace("NAME", "two"),
    }
    write_files(tmp_path / "project", files)
    contents = collected(tmp_path / "project", "jobs/clicks.yaml")
    assert contents.diagnostics == ()
    assert contents.pipelines == {name: text.encode() for name, text in files.items()}
    wheel = built(tmp_path / "project", "jobs/clicks.yaml")
    (tmp_path / "clicks.zip").write_bytes(wheel.data)
    monkeypatch.syspath_prepend(str(tmp_path / "clicks.zip"))
    installed = Installed(wheel.manifest.package)
    for profile, name in ((None, "one"), ("prod", "two")):
        loaded = installed.load(
            installed.pipeline(None), tmp_path / "elsewhere", LoadOptions(profile=profile)
        )
        checked = check_definition(loaded)
        assert checked.plan is not None, checked.diagnostics
        plan = checked.plan
        assert [column.name for column in plan.facts["read"].columns or ()] == [name]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("../../one.avsc", ("GB621", "error")),
        ("{folder}/project/jobs/one.avsc", ("GB622", "warning")),
        ("${{env:SCHEMA}}", ("GB635", "warning")),
    ],
)
def test_files_with_texts_that_can_not_be_taken(
    tmp_path: Path, path: str, found: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHEMA", "one.avsc")
    text = AVRO.replace("schema: one.avsc", f'schema: "{path.format(folder=tmp_path)}"').replace(
        "  prod: ", "  x: "
    )
    if "env" in path:
        text = AVRO.replace("${schema}", path.format())
    write_files(
        tmp_path, {"project/jobs/clicks.yaml": text, "project/jobs/one.avsc": SCHEMA, "one.avsc": SCHEMA}
    )
    write_files(tmp_path, {"project/shared/two.avsc": SCHEMA})
    problem = problems(tmp_path / "project", "jobs/clicks.yaml")[0]
    assert (problem.code, problem.severity) == found


def test_functions_of_python_itself_need_nothing(tmp_path: Path) -> None:
    write_files(tmp_path, {"ticks.yaml": CLEAN.replace("jobs:clean", "copy:copy")})

    contents = collected(tmp_path)

    assert (contents.files, contents.imports, contents.diagnostics) == ({}, (), ())


def test_imports_for_type_checkers_and_those_that_may_fail_are_left_out(tmp_path: Path) -> None:
    jobs = (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import holidays\n"
        "try:\n    import simplejson\n    import jobs_extra.deep\nexcept ImportError:\n    import json\n"
        "try:\n    from rules import limit\nexcept (ValueError, ModuleNotFoundError):\n    limit = 1\n"
    )
    write_files(tmp_path, {"ticks.yaml": CLEAN, "jobs.py": jobs, "rules.py": "limit = 2\n"})

    contents = collected(tmp_path)

    assert contents.modules == ("jobs", "rules")
    assert contents.imports == ()
    assert contents.diagnostics == ()


def test_modules_that_are_imported_by_name_are_taken(tmp_path: Path) -> None:
    jobs = (
        "import importlib\n"
        "rules = importlib.import_module('rules')\n"
        "text = __import__('text')\n"
        "importlib.import_module(f'{text}')\n"
    )
    write_files(tmp_path, {"ticks.yaml": CLEAN, "jobs.py": jobs, "rules.py": "", "text.py": ""})

    assert collected(tmp_path).modules == ("jobs", "rules", "text")


# Gems that live in the project


@pytest.fixture
def own_gems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project that is installed as it lies there, with a gem of its own."""
    write_files(
        tmp_path,
        {
            "ticks.yaml": TICKS.replace("gem: rate", "gem: sheep"),
            "acme_sheep/__init__.py": (
                "from gem_bundle import hookimpl\n\n"
                "@hookimpl\n"
                "def gem_bundle_register_gems(register):\n"
                "    register('source', 'sheep', 'acme_sheep.source:Sheep')\n"
            ),
            "acme_sheep/source.py": (
                "from acme_wool import thread\n"
                "from gem_bundle import NoOptions, Source\n\n"
                "class Sheep(Source[NoOptions]):\n    '''Count sheep.'''\n"
            ),
            "acme_wool.py": "thread = 1\n",
            "acme_sheep-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: Acme.Sheep\nVersion: 1.0\n",
            "acme_sheep-1.0.dist-info/entry_points.txt": "[gem_bundle]\nsheep = acme_sheep\n",
        },
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [n for n in sys.modules if n.startswith("acme_")]:
        del sys.modules[name]


def test_a_gem_of_the_project_goes_in_with_its_entry_point(own_gems: Path) -> None:
    contents = collected(own_gems)

    assert contents.entry_points == (("sheep", "acme_sheep"),)
    assert contents.own == ("acme-sheep",)
    assert sorted(contents.files) == ["acme_sheep/__init__.py", "acme_sheep/source.py", "acme_wool.py"]
    assert {used.name for used in contents.imports} == {"gem_bundle"}
    assert check_dependencies(contents, [brings("gem-bundle", "gem_bundle")]) == []
    assert contents.diagnostics == ()


def test_a_gem_that_is_installed_elsewhere_stays_out(own_gems: Path, tmp_path: Path) -> None:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "ticks.yaml").rename(tmp_path / "pipelines" / "ticks.yaml")

    contents = collected(tmp_path / "pipelines")

    assert (contents.entry_points, contents.own, contents.files) == ((), (), {})


def test_gems_in_an_environment_inside_the_project_are_not_its_own(own_gems: Path, tmp_path: Path) -> None:
    site = tmp_path / "venv" / "lib" / "site-packages"
    site.mkdir(parents=True)
    for entry in [*tmp_path.glob("acme_*")]:
        entry.rename(site / entry.name)
    sys.path.insert(0, str(site))
    try:
        assert collected(tmp_path).own == ()
    finally:
        sys.path.remove(str(site))


# What can't be taken


def test_a_missing_module_is_reported_at_its_option(tmp_path: Path) -> None:
    write_files(tmp_path, {"ticks.yaml": CLEAN, "lib/jobs.py": JOBS})

    (found,) = problems(tmp_path)

    assert found.code == "GB620"
    assert found.is_error
    assert (found.node, found.line) == ("clean", 5)
    assert found.message == "`clean`: there is no Python module `jobs`"
    assert found.hint == (
        f"Put `jobs.py` beside the pipeline file; there is one at `{tmp_path / 'lib' / 'jobs.py'}`."
    )


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("import acme.nothing\n", "acme.nothing"),
        ("from acme.nothing import x\n", "acme.nothing"),
        ("from .nothing import x\n", "acme.nothing"),
        ("from .deep.nothing import x\n", "acme.deep.nothing"),
        ("def f():\n    import acme.deep.nothing.more\n", "acme.deep.nothing"),
    ],
)
def test_a_missing_part_of_a_package_is_reported_at_its_import(
    tmp_path: Path, text: str, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(
        tmp_path,
        {
            "ticks.yaml": CLEAN.replace("jobs:", "acme.jobs:"),
            "acme/__init__.py": "",
            "acme/jobs.py": text,
            "acme/deep/__init__.py": "",
        },
    )

    (found,) = problems(tmp_path)

    assert found.code == "GB620"
    assert found.message == f"there is no Python module `{missing}`"
    assert found.file == str(Path("acme", "jobs.py"))
    assert found.line == text.count("\n")


@pytest.mark.parametrize("name", ["jobs", "jobs.rules"])
def test_a_package_without_init_is_refused(tmp_path: Path, name: str) -> None:
    write_files(tmp_path, {"ticks.yaml": CLEAN.replace("jobs:", f"{name}:"), "jobs/rules.py": JOBS})

    (found,) = problems(tmp_path)

    assert (found.code, found.node) == ("GB623", "clean")
    assert "`__init__.py`" in found.message
    assert "Add an empty `__init__.py`" in found.hint


def test_a_package_without_init_inside_another_is_refused_where_it_is_imported(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "ticks.yaml": CLEAN.replace("jobs:", "acme:"),
            "acme/__init__.py": "from acme.deep import rules\n",
            "acme/deep/rules.py": "",
            "acme/scripts/by_hand.py": "",
        },
    )

    assert codes(tmp_path) == ["GB623"]


@pytest.mark.parametrize("name", ["statistics", "pyspark", "gem_bundle", "ticks_bundle"])
def test_a_module_with_a_taken_name_is_refused(tmp_path: Path, name: str) -> None:
    write_files(tmp_path, {"ticks.yaml": CLEAN.replace("jobs:", f"{name}:"), f"{name}.py": JOBS})

    (found,) = problems(tmp_path)

    assert found.code == "GB627"
    assert f"`{name}`" in found.message


def test_two_modules_of_one_name_are_refused(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "a/ticks.yaml": CLEAN,
            "a/jobs.py": JOBS,
            "b/tocks.yaml": CLEAN.replace("pipeline: ticks", "pipeline: tocks"),
            "b/jobs.py": JOBS + "# another\n",
        },
    )

    (found,) = problems(tmp_path, "a/ticks.yaml", "b/tocks.yaml")

    assert found.code == "GB627"
    assert found.file.endswith("tocks.yaml")


def test_two_modules_of_one_name_and_the_same_contents_are_one(tmp_path: Path) -> None:
    tocks = CLEAN.replace("pipeline: ticks", "pipeline: tocks")
    write_files(
        tmp_path, {"a/ticks.yaml": CLEAN, "a/jobs.py": JOBS, "b/tocks.yaml": tocks, "b/jobs.py": JOBS}
    )

    assert codes(tmp_path, "a/ticks.yaml", "b/tocks.yaml") == []


def test_two_pipelines_of_one_name_are_refused(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.yaml": TICKS, "b.yaml": TICKS})

    (found,) = problems(tmp_path, "a.yaml", "b.yaml")

    assert found.code == "GB628"
    assert str(tmp_path / "a.yaml") in found.message
    assert found.file.endswith("b.yaml")


def test_a_pipeline_file_outside_the_project_is_refused(tmp_path: Path) -> None:
    write_files(tmp_path, {"ticks.yaml": TICKS, "project/readme": ""})
    (tmp_path / "project" / "link.yaml").symlink_to(tmp_path / "ticks.yaml")

    assert codes(tmp_path / "project", "../ticks.yaml") == ["GB621"]
    assert codes(tmp_path / "project", "link.yaml") == ["GB621"]


def test_modules_that_lead_out_of_the_project_are_refused(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "jobs.py": JOBS,
            "rules/__init__.py": "",
            "project/ticks.yaml": CLEAN.replace("jobs:", "acme:"),
            "project/acme/__init__.py": "import jobs\n",
        },
    )
    (tmp_path / "project" / "jobs.py").symlink_to(tmp_path / "jobs.py")
    (tmp_path / "project" / "acme" / "rules").symlink_to(tmp_path / "rules", target_is_directory=True)

    found = problems(tmp_path / "project")

    assert [diagnostic.code for diagnostic in found] == ["GB621", "GB621"]
    assert all(diagnostic.hint for diagnostic in found)


@pytest.mark.parametrize("path", ["../out", "out/../../out", "file:../out"])
def test_a_relative_path_that_leads_out_of_the_job_s_folder_is_refused(tmp_path: Path, path: str) -> None:
    text = TICKS.replace(
        "{gem: console, input: ticks}", f"{{gem: delta, input: ticks, options: {{path: {path}}}}}"
    )
    write_files(tmp_path, {"ticks.yaml": text})

    (found,) = problems(tmp_path)

    assert (found.code, found.node, found.line) == ("GB621", "screen", 5)


def test_checkpoints_outside_the_job_s_folder_are_refused(tmp_path: Path) -> None:
    write_files(tmp_path, {"ticks.yaml": "checkpoints: ../checkpoints\n" + TICKS})

    (found,) = problems(tmp_path)

    assert (found.code, found.line) == ("GB621", 1)


def test_paths_of_this_machine_are_a_warning(tmp_path: Path) -> None:
    target = "{gem: delta, input: ticks, options: {path: %s}}"
    text = TICKS.replace("{gem: console, input: ticks}", target % (tmp_path / "out"))
    write_files(tmp_path, {"ticks.yaml": text})

    (found,) = problems(tmp_path)

    assert (found.code, found.severity) == ("GB622", "warning")


@pytest.mark.parametrize("path", ["/data/out", "s3a://bucket/../out", "out", "${place}", "hdfs:///x"])
def test_other_paths_are_fine(tmp_path: Path, path: str) -> None:
    target = "{gem: delta, input: ticks, options: {path: '%s'}}"
    text = "parameters: {place: {type: string}}\n" + TICKS.replace(
        "{gem: console, input: ticks}", target % path
    )
    write_files(tmp_path, {"ticks.yaml": text})

    assert codes(tmp_path) == []


def test_a_module_that_is_no_python_is_reported_with_its_line(tmp_path: Path) -> None:
    write_files(tmp_path, {"ticks.yaml": CLEAN, "jobs.py": "import json\ndef clean(ticks)\n    return 1\n"})

    (found,) = problems(tmp_path)

    assert (found.code, found.line) == ("GB634", 2)
    assert found.file.endswith("jobs.py")


def test_a_module_with_null_characters_is_reported(tmp_path: Path) -> None:
    write_files(tmp_path, {"ticks.yaml": CLEAN, "jobs.py": b"x = 1\0\n"})

    assert codes(tmp_path) == ["GB634"]


def test_native_code_is_refused(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "ticks.yaml": CLEAN.replace("jobs:", "acme:"),
            "acme/__init__.py": "from acme import _fast\n",
            "acme/_fast.cpython-311-x86_64-linux-gnu.so": b"\x7fELF",
        },
    )

    (found,) = problems(tmp_path)

    assert found.code == "GB634"
    assert "native code" in found.message


def test_a_file_whose_name_isn_t_unicode_is_refused(tmp_path: Path) -> None:
    write_files(tmp_path, {"ticks.yaml": CLEAN.replace("jobs:", "acme:"), "acme/__init__.py": JOBS})
    Path(os.fsdecode(os.fsencode(tmp_path / "acme") + b"/caf\xe9.txt")).write_bytes(b"")

    assert codes(tmp_path) == ["GB634"]


def test_a_pipeline_file_whose_path_can_t_be_printed_is_refused(tmp_path: Path) -> None:
    write_files(tmp_path, {"a\tb.yaml": TICKS})

    assert codes(tmp_path, "a\tb.yaml") == ["GB634"]


def test_a_module_that_can_t_be_read_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"ticks.yaml": CLEAN, "jobs.py": JOBS})
    real = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        if path.name == "jobs.py":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)

    found = problems(tmp_path)

    assert {diagnostic.code for diagnostic in found} == {"GB634"}
    assert "Permission denied" in found[0].message


# Secrets

KAFKA = """\
pipeline: ticks
parameters:
  password: {parameter}
profiles:
  prod: {{password: "{profile}"}}
sources:
  ticks:
    gem: kafka
    options:
      bootstrap_servers: localhost:9092
      subscribe: ticks
      kafka.ssl.key.password: {option}
targets:
  screen: {{gem: console, input: ticks}}
"""


@pytest.mark.parametrize(
    ("option", "parameter", "profile", "lines"),
    [
        ("swordfish", "x", "x", [12]),
        ("${password}", "swordfish", "${env:PASSWORD}", [3]),
        ("${password}", "{type: string, default: swordfish}", "tuna", [3, 5]),
        ("a${password}b", "{type: string}", "tuna", [5]),
    ],
)
def test_a_secret_that_is_spelled_out_is_refused(
    tmp_path: Path, option: str, parameter: str, profile: str, lines: list[int]
) -> None:
    text = KAFKA.format(option=option, parameter=parameter, profile=profile)
    write_files(tmp_path, {"ticks.yaml": text})

    found = problems(tmp_path)

    assert [(d.code, d.line) for d in found] == [("GB629", line) for line in lines]
    assert "swordfish" not in str(found)
    assert "tuna" not in str(found)


@pytest.mark.parametrize("option", ["${secret:kafka/key}", "${env:KEY_PASSWORD}", "${password}", "''"])
def test_references_to_secrets_are_fine(tmp_path: Path, option: str) -> None:
    text = KAFKA.format(option=option, parameter="{type: string}", profile="${secret:kafka/prod}")
    write_files(tmp_path, {"ticks.yaml": text})

    assert codes(tmp_path) == []


def test_secrets_in_a_mapping_of_options_are_found(tmp_path: Path) -> None:
    text = """\
pipeline: ticks
parameters:
  how:
    type: mapping
    default: {bootstrap_servers: "localhost:9092", subscribe: ticks, sslKeyPassword: swordfish}
profiles:
  prod:
    how: {bootstrap_servers: "localhost:9092", subscribe: ticks, sslKeyPassword: "${secret:kafka/key}"}
sources:
  ticks: {gem: kafka, options: "${how}"}
targets:
  screen: {gem: console, input: ticks}
"""
    write_files(tmp_path, {"ticks.yaml": text})

    (found,) = problems(tmp_path)

    assert (found.code, found.line) == ("GB629", 5)


SETTINGS = """\
pipeline: shop
parameters:
  account: {{type: string, default: "x"}}
spark:
  spark.hadoop.fs.s3a.secret.key: "{0}"
  spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net: "{0}"
  spark.sql.shuffle.partitions: 3
  spark.authenticate.secret.required: "true"
sources:
  orders:
    gem: file
    options:
      format: json
      path: in
      schema: id int
      spark_options: {{fs.s3a.access.key: "{0}", timestampFormat: "yyyy"}}
  events:
    gem: kafka
    options:
      bootstrap_servers: localhost:9092
      subscribe: ticks
      spark_options: {{kafka.sasl.login.refresh.window.factor: "0.8", url: "http://shop:{0}@localhost"}}
targets:
  table:
    gem: table
    input: orders
    options:
      table: lake.shop.orders
      catalog: {{kind: rest, uri: "http://localhost:1", settings: {{s3.secret-access-key: "{0}"}}}}
  screen: {{gem: console, input: events}}
"""


def test_secrets_in_what_is_passed_on_as_it_is_are_found_by_their_names(tmp_path: Path) -> None:
    write_files(tmp_path, {"ticks.yaml": SETTINGS.format("swordfish")})

    found = [d for d in problems(tmp_path) if d.code == "GB629"]

    assert sorted(d.line or 0 for d in found) == [5, 6, 16, 22, 29]
    assert "swordfish" not in str(found)
    write_files(tmp_path, {"ticks.yaml": SETTINGS.format("${secret:lake/key}")})
    assert "GB629" not in codes(tmp_path)


# What comes from elsewhere


def test_what_isn_t_of_the_project_must_be_brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = "import yaml\nimport yaml.nodes\nfrom pyspark.sql import functions\nimport holidays.de\n"
    write_files(tmp_path, {"ticks.yaml": CLEAN, "jobs.py": jobs})
    contents = collected(tmp_path)

    assert contents.diagnostics == ()
    both = [brings("pyyaml", "_yaml", "yaml"), brings("holidays-of-the-world", "holidays.de")]
    assert check_dependencies(contents, both) == []
    first, second = check_dependencies(contents, [brings("pluggy", "pluggy")])
    assert (first.code, str(first.place)) == ("GB624", "jobs.py:1:1")
    assert "`PyYAML`" in first.hint
    assert (second.code, second.line) == ("GB624", 4)
    assert "`holidays`" in second.hint


def test_a_function_of_an_installed_package_must_be_brought(tmp_path: Path) -> None:
    write_files(tmp_path, {"ticks.yaml": CLEAN.replace("jobs:clean", "yaml:safe_load")})
    contents = collected(tmp_path)

    (found,) = check_dependencies(contents, [])

    assert (found.code, found.node, found.line) == ("GB624", "clean", 5)
    assert check_dependencies(contents, [brings("pyyaml", "yaml")]) == []


def test_imports_in_long_sums_are_read() -> None:
    source = "total = " + " + ".join(["__import__('a')"] * 2_000)

    assert len(imports_of(source.encode())) == 2_000


def test_a_module_that_is_nested_too_deep_is_reported(tmp_path: Path) -> None:
    write_files(tmp_path, {"ticks.yaml": CLEAN, "jobs.py": "x = " + "-" * 100_000 + "1\n"})

    assert codes(tmp_path) == ["GB634"]


def test_a_namespace_package_that_is_installed_is_of_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path / "site-packages", {"acme_space/rules.py": JOBS})
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    write_files(tmp_path / "project", {"ticks.yaml": CLEAN.replace("jobs:", "acme_space.rules:")})

    contents = collected(tmp_path / "project")

    assert [used.name for used in contents.imports] == ["acme_space.rules"]
    assert contents.diagnostics == ()


def test_a_module_that_python_can_t_find_its_way_to_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "acme_ghost", ModuleType("acme_ghost"))
    write_files(tmp_path, {"ticks.yaml": CLEAN.replace("jobs:", "acme_ghost:")})

    assert codes(tmp_path) == ["GB620"]


@pytest.mark.parametrize(
    ("source", "package", "modules"),
    [
        ("import a.b as c, d", "", [("a.b", False), ("d", False)]),
        ("from a import b, c", "", [("a", False), ("a.b", True), ("a.c", True)]),
        ("from a import *", "", [("a", False)]),
        ("from . import x", "p.q", [("p.q", False), ("p.q.x", True)]),
        ("from .. import x", "p.q", [("p", False), ("p.x", True)]),
        ("from ..r import x", "p.q", [("p.r", False), ("p.r.x", True)]),
        ("from . import x", "", []),
        ("if TYPE_CHECKING:\n    import a\nelse:\n    import b", "", [("b", False)]),
        ("import_module('a.b')", "", [("a.b", False)]),
        ("import_module('not a name'); import_module(name); import_module()", "", []),
        ("import_module('.a', 'p')", "", []),
    ],
)
def test_imports_are_read(source: str, package: str, modules: list[tuple[str, bool]]) -> None:
    found = imports_of(source.encode())

    assert [module for statement in found for module in statement.modules(package)] == modules


@pytest.mark.parametrize(
    ("handler", "optional"),
    [
        ("except:", True),
        ("except Exception:", True),
        ("except builtins.ImportError as e:", True),
        ("except (KeyError, ImportError):", True),
        ("except KeyError:", False),
        ("finally:", False),
    ],
)
def test_imports_that_may_fail_are_told_from_others(handler: str, optional: bool) -> None:
    first, second = imports_of(f"try:\n    import a\n{handler}\n    import b\n".encode())

    assert (first.optional, second.optional) == (optional, False)


def test_a_module_may_not_hide_a_dependency(tmp_path: Path) -> None:
    write_files(tmp_path, {"ticks.yaml": CLEAN.replace("jobs:", "yaml:"), "yaml.py": JOBS})
    contents = collected(tmp_path)

    (found,) = check_dependencies(contents, [brings("pyyaml", "yaml")])

    assert (found.code, found.is_error) == ("GB627", True)
    assert check_dependencies(contents, [brings("pluggy", "pluggy")]) == []


def test_all_problems_of_all_pipelines_are_said_at_once(tmp_path: Path) -> None:
    tocks = CLEAN.replace("pipeline: ticks", "pipeline: tocks").replace("jobs:", "gone:")
    write_files(
        tmp_path,
        {
            "ticks.yaml": CLEAN,
            "tocks.yaml": "checkpoints: ../x\n" + tocks,
            "jobs.py": "import rules.no\n",
            "rules.py": "",
        },
    )

    assert sorted(codes(tmp_path, "ticks.yaml", "tocks.yaml")) == ["GB620", "GB620", "GB621"]


def test_collecting_runs_nothing_of_the_user_s(tmp_path: Path) -> None:
    write_files(tmp_path, {"ticks.yaml": CLEAN, "jobs.py": "raise SystemExit('it ran')\n"})

    assert collected(tmp_path).modules == ("jobs",)
    assert "jobs" not in sys.modules
    assert [d.name for d in load(tmp_path, "ticks.yaml")] == ["ticks"]


def test_functions_are_known_by_the_modules_in_the_zip_whatever_the_root_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """pipeline: zipped
sources: {ticks: {gem: rate}}
transforms: {clean: {gem: python, input: ticks, options: {function: "zipped_jobs:clean"}}}
targets: {out: {gem: console, input: clean}}
"""
    project = tmp_path / "project"
    write_files(project, {"zipped.yaml": text, "zipped_jobs.py": "def clean(df):\n    return df\n"})
    wheel = built(project, "zipped.yaml")
    (tmp_path / "zipped.zip").write_bytes(wheel.data)
    monkeypatch.syspath_prepend(str(tmp_path / "zipped.zip"))
    write_files(tmp_path / "root", {"zipped_jobs.py": "def clean(df):\n    return df.limit(1)\n"})
    installed = Installed(wheel.manifest.package)
    loaded = installed.load(installed.pipeline(None), tmp_path / "root", LoadOptions(environment={}))
    assert loaded.definition is not None
    found = function_hash("zipped_jobs:clean", loaded.definition.module_folder)
    assert found == function_hash("zipped_jobs:clean", project)
    assert found
