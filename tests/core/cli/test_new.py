"""`gem-bundle new NAME`: what is written, that it runs, and what is never done to what is there."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from gem_bundle.cli import main
from gem_bundle.errors import GemError
from gem_bundle.scaffold import Tree, folders, gem_names, project_names, project_tree, write
from gem_bundle.scaffold.names import LONGEST
from tests.counting import calls_of_command
from tests.kit.scaffolds import GOLDEN, as_text, trees

if TYPE_CHECKING:
    from click.testing import Result
    from pyspark.sql import SparkSession

    from gem_bundle.semantics import Kind
    from tests.core.cli.conftest import Cli

SMALL = Tree("small", {"a.txt": "a\n", "deep/b.txt": "b\n"})


def new(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["new", *arguments], prog_name="gem-bundle")
    assert "Traceback" not in result.output
    return result


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GEM_BUNDLE_SETTINGS", raising=False)


# What is written


@pytest.mark.parametrize(("golden", "tree"), [pytest.param(*found, id=found[0]) for found in trees()])
def test_what_is_written(golden: str, tree: Tree, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write(tree, tmp_path)
    finally:
        os.umask(before)

    assert as_text(tmp_path) == (GOLDEN / golden).read_text(encoding="utf-8"), (
        "if that is meant to be, run `python -m tests.kit.scaffolds`"
    )


def test_no_golden_file_is_left_over() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {name for name, _ in trees()}


def test_the_command_says_what_it_wrote_and_what_comes_next(tmp_path: Path) -> None:
    result = new("shop-orders")

    assert (result.exit_code, result.stderr) == (0, "")
    head, _, then = result.stdout.partition("\n\nNext:\n")
    there = sorted(str(p.relative_to("shop-orders")) for p in Path("shop-orders").rglob("*") if p.is_file())
    first, *listed = head.splitlines()
    assert first == f"shop-orders: {len(there)} files"
    assert sorted(line.strip() for line in listed) == there
    assert then.split("\n  ")[0].strip() == "cd shop-orders"
    assert "gem-bundle test" in then


def test_quiet_says_nothing(cli: Cli) -> None:
    assert cli("new", "orders", "-q").output == ""
    assert Path("orders/orders.yaml").exists()


@pytest.mark.programs
def test_it_does_less_than_a_check() -> None:
    for arguments in (["orders"], ["gem", "acme_queue", "--kind", "source"]):
        made = calls_of_command("new", *arguments)
        assert made < calls_of_command("check", "orders/orders.yaml")


@pytest.mark.programs
def test_nothing_is_asked_of_a_network_or_of_spark() -> None:
    probe = (
        "import sys\n"
        "sys.addaudithook(lambda event, args: event.startswith('socket.') and sys.exit('network'))\n"
        "from gem_bundle.cli import main\n"
        "try:\n    main(['new', *sys.argv[1:], '-q'], prog_name='gem-bundle')\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "assert 'pyspark' not in sys.modules\n"
    )
    for arguments in (["orders"], ["gem", "acme_queue", "--kind", "target"]):
        subprocess.run([sys.executable, "-c", probe, *arguments], check=True)


# It works


def test_a_new_project_has_nothing_that_a_check_finds() -> None:
    new("orders")

    result = CliRunner().invoke(main, ["check", "--deny-warnings", "orders/orders.yaml"])

    assert (result.exit_code, result.stdout) == (0, "orders/orders.yaml: ok (6 nodes)\n")


@pytest.mark.spark
def test_a_new_project_passes_its_tests_and_runs(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark.version
    new("shop-orders")
    monkeypatch.chdir("shop-orders")

    tested = CliRunner().invoke(main, ["test"])
    assert tested.exit_code == 0, tested.output
    assert "2 passed" in tested.output
    # The tests left nothing behind, and find what is broken.
    assert not list(Path().glob("out*"))
    text = Path("shop_orders.yaml").read_text()
    Path("shop_orders.yaml").write_text(text.replace("delay: 30 minutes", "delay: 3 hours"))
    assert CliRunner().invoke(main, ["test", "-x"]).exit_code == 1
    Path("shop_orders.yaml").write_text(text)

    assert sales(run()) == [
        ("2026-01-05T09:00:00", "Oslo", 2, 42.0),
        ("2026-01-05T09:00:00", "Rome", 1, 18.5),
        ("2026-01-05T10:00:00", "Rome", 1, 25.0),
        ("2026-01-05T11:00:00", "Oslo", 1, 7.0),
        ("2026-01-06T09:00:00", "Oslo", 1, 12.0),
        ("2026-01-06T14:00:00", "Lima", 1, 40.0),
    ]
    # What the README says: an order of 5 o'clock ends the hour from 3 to 4.
    (order,) = re.findall(
        r"^echo '(.*)' > data/orders/late.json$", Path("README.md").read_text(), re.MULTILINE
    )
    Path("data/orders/late.json").write_text(order + "\n")
    assert sales(run())[6:] == [("2026-01-06T15:00:00", "Rome", 1, 9.5)]


def run() -> Path:
    done = CliRunner().invoke(main, ["run", "shop_orders.yaml"])
    assert done.exit_code == 0, done.output
    return Path("out/sales")


def sales(folder: Path) -> list[tuple[object, ...]]:
    import json

    rows = [json.loads(line) for file in folder.glob("*.json") for line in file.read_text().splitlines()]
    return sorted((row["hour"][:19], row["shop"], row["orders"], row["sales"]) for row in rows)


def test_the_readme_names_only_what_is_there() -> None:
    new("orders")
    readme = Path("orders/README.md").read_text()

    for line in re.findall(r"^gem-bundle .*$", readme, re.MULTILINE):
        words = line.split()[1:]
        group = click.Context(main, **main.context_settings)
        command = main.get_command(group, words[0])
        assert command is not None, line
        with click.Context(command, info_name=words[0], parent=group) as context:
            command.make_parser(context).parse_args(args=words[1:])
        assert all(Path("orders", word).exists() for word in words if word.endswith(".yaml")), line
    for name in re.findall(r"^\| `([^`]+)` \|", readme, re.MULTILINE):
        assert Path("orders", name).exists(), name


def test_the_ci_file_is_one_and_does_what_the_readme_says() -> None:
    new("orders")

    text = Path("orders/.github/workflows/ci.yml").read_text()

    steps = yaml.safe_load(text)["jobs"]["test"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    assert commands[0] == "pip install -r requirements.txt"
    assert commands[1].endswith("orders.yaml")
    assert commands[2] == "gem-bundle test"


# What is there already


def test_files_that_are_there_are_named_all_at_once_and_stay() -> None:
    Path("orders/data").mkdir(parents=True)
    Path("orders/README.md").write_text("mine")
    Path("orders/orders.yaml").symlink_to("nowhere")
    Path("orders/other.txt").write_text("mine too")

    result = new("orders")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[GB803]" in result.stderr
    assert "2 of the files that would be written: `README.md`, `orders.yaml`" in result.stderr
    assert sorted(path.name for path in Path("orders").rglob("*")) == [
        "README.md",
        "data",
        "orders.yaml",
        "other.txt",
    ]
    assert Path("orders/README.md").read_text() == "mine"
    assert list(Path().iterdir()) == [Path("orders")]


def test_a_folder_with_other_files_is_somebody_elses() -> None:
    Path("orders/.git").mkdir(parents=True)

    result = new("orders")

    assert result.exit_code == 1
    assert "with something in it: `.git`" in result.stderr
    assert [path.name for path in Path("orders").iterdir()] == [".git"]


def test_an_empty_folder_is_taken() -> None:
    Path("orders").mkdir()

    assert new("orders").exit_code == 0
    assert Path("orders/orders.yaml").exists()


@pytest.mark.parametrize(
    ("what", "said"), [("file", "no folder"), ("link", "a link"), ("broken", "no folder")]
)
def test_what_is_no_folder_stays(what: str, said: str) -> None:
    Path("empty").mkdir()
    if what == "file":
        Path("orders").write_text("mine")
    else:
        Path("orders").symlink_to("empty" if what == "link" else "nowhere")

    result = new("orders")

    assert result.exit_code == 1
    assert said in result.stderr
    assert sorted(path.name for path in Path().iterdir()) == ["empty", "orders"]
    assert not Path("orders").is_dir() or what == "link"
    assert list(Path("empty").iterdir()) == []


def test_who_comes_first_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = folders._refuse_what_is_there
    looked = []

    def look_and_lose(tree: Tree, folder: Path) -> None:
        refuse(tree, folder)
        if not looked:
            looked.append(folder)
            folder.mkdir()
            (folder / "a.txt").write_text("theirs")

    monkeypatch.setattr(folders, "_refuse_what_is_there", look_and_lose)

    with pytest.raises(GemError, match=r"`a\.txt`") as caught:
        write(SMALL, tmp_path)

    assert caught.value.code == "GB803"
    assert [path.name for path in tmp_path.iterdir()] == ["small"]
    assert (tmp_path / "small" / "a.txt").read_text() == "theirs"


def test_nothing_is_left_of_what_can_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    write_text = Path.write_text

    def full(path: Path, *arguments: str, **options: str) -> int:
        if written:
            raise OSError(28, "No space left on device", str(path))
        written.append(path)
        return write_text(path, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", full)

    with pytest.raises(OSError, match="No space left"):
        write(SMALL, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_files_have_the_rights_that_the_user_gives_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        folder = write(SMALL, tmp_path)
    finally:
        os.umask(before)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o750
    assert stat.S_IMODE((folder / "deep" / "b.txt").stat().st_mode) == 0o640


# Names


@pytest.mark.parametrize(
    ("name", "pipeline"),
    [("orders", "orders"), ("shop-orders", "shop_orders"), ("a1_b2", "a1_b2"), ("x", "x")],
)
def test_a_projects_names(name: str, pipeline: str) -> None:
    names = project_names(name)

    assert (names.folder, names.pipeline) == (name, pipeline)
    assert f"{pipeline}.test.yaml" in project_tree(names).texts


@pytest.mark.parametrize(
    ("name", "why", "better"),
    [
        ("", "empty", "orders"),
        ("Orders", "lower-case", "orders"),
        ("shop orders", "lower-case", "shop_orders"),
        ("shop/orders", "lower-case", "orders"),
        ("./orders/", "lower-case", "orders"),
        ("../orders", "lower-case", "orders"),
        ("orders.yaml", "lower-case", "orders_yaml"),
        ("2orders", "begin with a letter", "orders_2"),
        ("24-7-shop", "begin with a letter", "shop-247"),
        ("_orders", "begin with a letter", "orders"),
        ("shop--orders", "one at a time", "shop-orders"),
        ("orders_", "one at a time", "orders"),
        ("Größe", "lower-case", "grosse"),
        ("訂單", "lower-case", "orders"),
        ("true", "no text", "is_true"),
        ("o" * (LONGEST + 1), f"{LONGEST} are the most", "o" * LONGEST),
    ],
)
def test_a_bad_name_is_answered_with_a_good_one(name: str, why: str, better: str, tmp_path: Path) -> None:
    result = new("--", name)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "error[GB801]" in result.stderr
    assert why in result.stderr
    assert f"`{better}` is a name that can be used." in result.stderr
    assert list(tmp_path.iterdir()) == []
    assert new(better).exit_code == 0


@given(st.text(max_size=60), st.sampled_from(["source", "transform", "target"]))
def test_the_name_in_the_hint_can_always_be_used(text: str, kind: Kind) -> None:
    for made in (project_names, lambda name: gem_names(name, kind)):
        hint = ""
        try:
            made(text)
        except GemError as error:
            hint = error.hint
        if hint:
            made(hint.split("`")[1])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Name one project, as in `gem-bundle new orders`, or a gem"),
        (["a", "b"], "Name one project"),
        (["orders", "--kind", "source"], "A project has no kind"),
        (["gem"], "Name one gem"),
        (["gem", "a", "b", "--kind", "source"], "Name one gem"),
        (["gem", "acme_queue"], "gem-bundle new gem acme_queue --kind source|transform|target"),
        (["gem", "acme_queue", "--kind", "sink"], "'sink' is not one of"),
    ],
)
def test_a_wrong_use(arguments: list[str], said: str, tmp_path: Path) -> None:
    result = new(*arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert said in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []
