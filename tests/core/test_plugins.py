"""How plugins are found: identity, duplicates, broken ones, picking and blocking."""

import shutil
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gem_bundle import Source, Target, Transform, hookimpl
from gem_bundle.errors import PluginError
from gem_bundle.plugins import KINDS, GemEntry, Origin, Registry, load_registry


class One(Source):
    """One."""


class Two(Transform):
    """Two."""


class Three(Target):
    """Three."""


Gem = tuple[str, str, Any]


@pytest.fixture
def plugins() -> Iterator["Plugins"]:
    """Makes modules with hooks, and the entry points that name them."""
    made = Plugins()
    yield made
    for name in made.modules:
        del sys.modules[name]


class Plugins:
    """Modules of plugins, made for one test."""

    def __init__(self) -> None:
        self.modules: list[str] = []

    def module(self, **names: object) -> str:
        name = f"gem_bundle_test_plugin_{len(self.modules)}"
        module = ModuleType(name)
        vars(module).update(names)
        sys.modules[name] = module
        self.modules.append(name)
        return name

    def registering(self, *gems: Gem, then: Exception | None = None) -> str:
        def gem_bundle_register_gems(register: Any) -> None:
            for gem in gems:
                register(*gem)
            if then is not None:
                raise then

        return self.module(gem_bundle_register_gems=hookimpl(gem_bundle_register_gems))


def load(points: Iterable[tuple[str, str]], **environment: str) -> Registry:
    found = [EntryPoint(name, value, "gem_bundle") for name, value in points]
    return load_registry(environment, found)


def names(registry: Registry) -> list[tuple[str, str]]:
    return [(entry.kind, entry.name) for entry in registry]


def test_gems_are_known_by_kind_and_name(plugins: Plugins) -> None:
    value = plugins.registering(("target", "a", Three), ("source", "b", One), ("source", "a", One))
    registry = load([("one", value)])

    assert names(registry) == [("source", "a"), ("source", "b"), ("target", "a")]
    assert registry.names("source") == ["a", "b"]
    assert registry.names("transform") == []
    assert registry.get("source", "a").load() is One
    assert registry.get("target", "a").load() is Three
    assert registry.broken == []
    assert list(registry.duplicates()) == []


def test_an_unknown_gem_is_answered_with_a_close_one(plugins: Plugins) -> None:
    registry = load([("one", plugins.registering(("source", "kafka", One)))])

    assert registry.has("source", "kafka")
    assert not registry.has("target", "kafka")
    with pytest.raises(PluginError, match="There is no source gem `kakfa`") as caught:
        registry.get("source", "kakfa")
    assert caught.value.hint == "Did you mean `kafka`?"


def test_a_class_is_imported_when_it_is_asked_for(plugins: Plugins) -> None:
    registry = load([("one", plugins.registering(("source", "later", "gem_bundle_test_later:Later")))])
    entry = registry.get("source", "later")
    assert "gem_bundle_test_later" not in sys.modules

    module = ModuleType("gem_bundle_test_later")
    module.Later = One  # type: ignore[attr-defined]
    sys.modules["gem_bundle_test_later"] = module
    try:
        assert entry.load() is One
    finally:
        del sys.modules["gem_bundle_test_later"]
    assert entry.load() is One


@pytest.mark.parametrize(
    ("kind", "reference", "problem"),
    [
        ("source", "gem_bundle_not_there:X", "ModuleNotFoundError"),
        ("source", f"{__name__}:Nothing", "AttributeError"),
        ("target", f"{__name__}:One", "does not derive from Target"),
        ("transform", f"{__name__}:names", "does not derive from Transform"),
    ],
)
def test_a_class_that_can_not_be_loaded(kind: Any, reference: str, problem: str) -> None:
    entry = GemEntry(kind, "x", reference, Origin("plug", "dist", "1.2"))

    with pytest.raises(PluginError, match=problem) as caught:
        entry.load()
    assert "`dist 1.2`" in str(caught.value)
    assert reference in str(caught.value)


def test_a_module_that_ends_the_process_when_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gem_bundle_test_quitter.py").write_text("raise SystemExit('bye')")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = load([("one", "gem_bundle_test_quitter")])

    assert [broken.error for broken in registry.broken] == ["SystemExit: bye"]
    entry = GemEntry("source", "x", "gem_bundle_test_quitter:X", Origin("p", "d", "1"))
    with pytest.raises(PluginError, match="SystemExit: bye"):
        entry.load()


# Broken plugins


def test_a_broken_plugin_does_not_stop_the_others(plugins: Plugins) -> None:
    good = plugins.registering(("source", "a", One))
    registry = load(
        [
            ("absent", "gem_bundle_not_there"),
            ("good", good),
            ("lost", f"{good}:nothing"),
            ("raises", plugins.registering(("source", "b", One), then=ValueError("no\nway"))),
        ]
    )

    assert names(registry) == [("source", "a")]
    assert {broken.origin.plugin: broken.error for broken in registry.broken} == {
        "absent": "ModuleNotFoundError: No module named 'gem_bundle_not_there'",
        "lost": f"AttributeError: module '{good}' has no attribute 'nothing'",
        "raises": "ValueError: no",
    }


@pytest.mark.parametrize(
    ("gem", "problem"),
    [
        (("sink", "a", One), "a gem is a source, transform or target, not 'sink'"),
        (("source", "", One), "unlike ''"),
        (("source", "a-b", One), "unlike 'a-b'"),
        (("source", 5, One), "unlike 5"),
        (("source", "a", None), "'module:Class'"),
        (("source", "a", "module.Class"), "'module:Class'"),
        (("source", "a"), "TypeError"),
    ],
)
def test_a_plugin_that_registers_nonsense_is_broken(plugins: Plugins, gem: Any, problem: str) -> None:
    registry = load([("one", plugins.registering(("source", "fine", One), gem))])

    assert names(registry) == []
    assert problem in registry.broken[0].error


def test_a_misspelt_hook_breaks_its_plugin_only(plugins: Plugins) -> None:
    @hookimpl
    def gem_bundle_register_gem(register: Any) -> None:
        raise AssertionError("nobody calls it")

    wrong = plugins.module(gem_bundle_register_gem=gem_bundle_register_gem)
    good = plugins.registering(("source", "a", One))
    for order in (("a", "b"), ("b", "a")):
        registry = load([(order[0], wrong), (order[1], good)])

        assert names(registry) == [("source", "a")]
        (broken,) = registry.broken
        assert broken.origin.plugin == order[0]
        assert "unknown hook 'gem_bundle_register_gem'" in broken.error


def test_a_hook_with_a_wrong_argument_breaks_its_plugin_only(plugins: Plugins) -> None:
    @hookimpl
    def gem_bundle_register_gems(registry: Any) -> None:
        raise AssertionError("nobody calls it")

    wrong = plugins.module(gem_bundle_register_gems=gem_bundle_register_gems)
    registry = load([("a", wrong), ("b", plugins.registering(("source", "a", One)))])

    assert names(registry) == [("source", "a")]
    assert "registry" in registry.broken[0].error


def test_functions_without_the_marker_are_no_hooks(plugins: Plugins) -> None:
    def gem_bundle_register_gems(register: Any) -> None:
        raise AssertionError("nobody calls it")

    registry = load([("a", plugins.module(gem_bundle_register_gems=gem_bundle_register_gems))])

    assert names(registry) == []
    assert registry.broken == []


# Duplicates


def test_two_gems_of_one_identity_name_both_owners() -> None:
    registry = Registry()
    registry.add(GemEntry("source", "kafka", One, Origin("kafka", "gem-bundle", "0.1.0")))
    registry.add(GemEntry("source", "kafka", One, Origin("better", "better-kafka", "2.0")))
    registry.add(GemEntry("target", "kafka", Three, Origin("better", "better-kafka", "2.0")))

    with pytest.raises(PluginError) as caught:
        registry.get("source", "kafka")
    assert caught.value.reason == (
        "The source gem `kafka` is registered by `gem-bundle 0.1.0` (plugin `kafka`) and "
        "`better-kafka 2.0` (plugin `better`)."
    )
    assert "GEM_BUNDLE_DISABLE_PLUGINS=better" in caught.value.hint
    assert list(registry.duplicates()) == [(caught.value.reason, caught.value.hint)]
    assert registry.get("target", "kafka").load() is Three


# Picking and blocking


@pytest.fixture
def three(plugins: Plugins) -> list[tuple[str, str]]:
    return [(name, plugins.registering(("source", name, One))) for name in ("a", "b", "c")]


@pytest.mark.parametrize(
    ("environment", "loaded"),
    [
        ({}, "abc"),
        ({"GEM_BUNDLE_PLUGINS": ""}, "abc"),
        ({"GEM_BUNDLE_PLUGINS": " a , c "}, "ac"),
        ({"GEM_BUNDLE_DISABLE_PLUGINS": "b"}, "ac"),
        ({"GEM_BUNDLE_DISABLE_PLUGINS": "b,,nobody"}, "ac"),
        ({"GEM_BUNDLE_PLUGINS": "a,b", "GEM_BUNDLE_DISABLE_PLUGINS": "b"}, "a"),
    ],
)
def test_plugins_can_be_picked_and_blocked(
    three: list[tuple[str, str]], environment: dict[str, str], loaded: str
) -> None:
    registry = load(three, **environment)

    assert registry.names("source") == list(loaded)
    assert registry.broken == []


def test_a_blocked_plugin_is_not_imported() -> None:
    registry = load([("broken", "gem_bundle_not_there")], GEM_BUNDLE_DISABLE_PLUGINS="broken")

    assert registry.broken == []


def test_picking_a_plugin_that_is_not_there(three: list[tuple[str, str]]) -> None:
    registry = load(three, GEM_BUNDLE_PLUGINS="a,d")

    assert registry.names("source") == ["a"]
    assert [(str(b.origin), b.origin.plugin, b.error) for b in registry.broken] == [
        ("GEM_BUNDLE_PLUGINS", "d", "there is no such plugin")
    ]


def test_the_process_s_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEM_BUNDLE_PLUGINS", "rate")

    assert {name for _, name in names(load_registry())} == {"generate", "rate", "rate_micro_batch"}


# Installed distributions


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a distribution in it, as pip leaves one."""
    package = tmp_path / "gem_bundle_test_acme"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from gem_bundle import Register, hookimpl\n\n\n"
        "@hookimpl\n"
        "def gem_bundle_register_gems(register: Register) -> None:\n"
        "    register('source', 'acme', 'gem_bundle_test_acme.source:AcmeSource')\n"
        "    register('source', 'rate', 'gem_bundle_test_acme.source:AcmeSource')\n"
    )
    (package / "source.py").write_text(
        'from gem_bundle import Source\n\n\nclass AcmeSource(Source):\n    """Read from Acme."""\n'
    )
    metadata = tmp_path / "acme_gems-3.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-gems\nVersion: 3.1\n")
    (metadata / "entry_points.txt").write_text("[gem_bundle]\nacme = gem_bundle_test_acme\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("gem_bundle_test_acme", "gem_bundle_test_acme.source"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("installed")
def test_an_installed_distribution_is_found() -> None:
    registry = load_registry({})
    entry = registry.get("source", "acme")

    assert (entry.origin.plugin, str(entry.origin)) == ("acme", "acme-gems 3.1")
    assert "gem_bundle_test_acme.source" not in sys.modules
    assert entry.load().summary() == "Read from Acme."
    with pytest.raises(PluginError, match=r"`acme-gems 3.1` \(plugin `acme`\)"):
        registry.get("source", "rate")
    assert not load_registry({"GEM_BUNDLE_DISABLE_PLUGINS": "acme"}).has("source", "acme")


def test_a_distribution_without_a_name_is_still_named(installed: Path) -> None:
    (installed / "acme_gems-3.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\n")

    assert str(load_registry({}).get("source", "acme").origin) == "gem_bundle_test_acme"


def test_what_is_installed_is_found_once_until_something_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = load_registry({})
    assert all(a is b for a, b in zip(load_registry({}), before, strict=True))
    load_registry({}).add(GemEntry("source", "added", One, Origin("added", "added", "1")))
    assert names(load_registry({})) == names(before)
    assert not load_registry({"GEM_BUNDLE_PLUGINS": "rate"}).has("source", "file")

    metadata = tmp_path / "late_gems-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: late-gems\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[gem_bundle]\nlate = gem_bundle_test_late\n")
    assert [broken.origin.plugin for broken in load_registry({}).broken] == ["late"]

    # Its folder on the path is as it was: what was broken is looked at again all the same.
    monkeypatch.setitem(sys.modules, "gem_bundle_test_late", ModuleType("gem_bundle_test_late"))
    assert load_registry({}).broken == []

    shutil.rmtree(metadata)
    assert names(load_registry({})) == names(before)


def test_the_built_in_gems_are_ordinary_plugins() -> None:
    registry = load_registry({})

    assert registry.broken == []
    assert list(registry.duplicates()) == []
    for entry in registry:
        assert entry.origin.distribution == "gem-bundle"
        assert entry.load().kind == entry.kind
    assert {entry.kind for entry in registry} == set(KINDS)


@pytest.mark.programs
def test_listing_the_gems_imports_none_of_them() -> None:
    import subprocess

    code = (
        "import sys; from gem_bundle.plugins import load_registry; load_registry({}); "
        "print(*[m for m in sys.modules if m.startswith('gem_') and '.' in m], 'pyspark' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    *modules, pyspark = result.stdout.split()
    assert pyspark == "False"
    assert {module.partition(".")[0] for module in modules} == {"gem_bundle"}
    assert "gem_bundle.gem" not in modules
