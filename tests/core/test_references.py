"""References: parameters, the environment, secrets, and what stands in for what isn't there."""

from pathlib import Path
from typing import Any

import pytest

from gem_bundle.pipeline.document import Unknown, parse
from gem_bundle.pipeline.loader import LoadOptions
from gem_bundle.pipeline.references import MAX_EXPANSION, Resolver
from gem_bundle.pipeline.secrets import HIDDEN, FromEnvironment, Secret, SecretStore, UnresolvedSecret, hidden
from tests.core.checking import MARK, check, found, load, marked

PARAMETERS: dict[str, Any] = {
    "topic": "clicks",
    "count": 3,
    "ratio": 0.5,
    "on": True,
    "brokers": ["a:1", "b:2"],
    "deep": {"x": [1]},
    "_odd1": "o",
}
ENVIRONMENT = {"HOME_TOWN": "Bonn", "EMPTY": ""}
OPTIONS = ("sources", "s", "options", "o")


def resolver(**more: Any) -> Resolver:
    document = parse("sources: {s: {options: {o: x}}}", "p.yaml")
    given: dict[str, Any] = {"environment": ENVIRONMENT, **more}
    return Resolver(given.pop("parameters", PARAMETERS), document, **given)


def resolve(value: Any, **more: Any) -> tuple[Any, list[str]]:
    filler = resolver(**more)
    return filler.resolve(value, OPTIONS), [d.code for d in filler.diagnostics]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # A value that is exactly one reference keeps its type.
        ("${topic}", "clicks"),
        ("${count}", 3),
        ("${ratio}", 0.5),
        ("${on}", True),
        ("${brokers}", ["a:1", "b:2"]),
        ("${deep}", {"x": [1]}),
        ("${ topic }", "clicks"),
        ("${_odd1}", "o"),
        ("${env:HOME_TOWN}", "Bonn"),
        ("${env: EMPTY }", ""),
        # Inside a text it becomes text, as YAML would write it.
        ("a-${topic}-z", "a-clicks-z"),
        ("${count}${count}", "33"),
        ("${ratio}/${on}", "0.5/true"),
        (" ${count}", " 3"),
        ("in ${env:HOME_TOWN}, ${topic}", "in Bonn, clicks"),
        # `$${` is a literal `${`.
        ("$${topic}", "${topic}"),
        ("a $${b} ${topic} $${", "a ${b} clicks ${"),
        # Nothing else is a reference.
        ("$topic {topic} $ {topic} #{topic}", "$topic {topic} $ {topic} #{topic}"),
        ("cost: 5$", "cost: 5$"),
        ("regexp '^a$'", "regexp '^a$'"),
    ],
)
def test_what_references_become(text: str, value: object) -> None:
    filled, codes = resolve(text)

    assert filled == value
    # What a text of the environment got into says so: it may be a secret.
    assert type(filled) is (FromEnvironment if "${env:" in text else type(value))
    assert codes == []


def test_references_are_filled_in_at_any_depth_but_not_in_keys() -> None:
    filled, codes = resolve({"a": ["${topic}", {"b": "x${count}"}], "${c}": 5, "d": None})

    assert filled == {"a": ["clicks", {"b": "x3"}], "${c}": 5, "d": None}
    assert codes == []


def test_what_is_filled_in_is_not_read_again() -> None:
    filled, codes = resolve("${a} ${a}", parameters={"a": "${b}"})

    assert filled == "${b} ${b}"
    assert codes == []


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        ("${topci}", "GB010", "no parameter `topci`", "`topic`"),
        ("x ${topci} y", "GB010", "no parameter `topci`", "`topic`"),
        ("${env:NOWHERE}", "GB014", "`NOWHERE` is not set", "export NOWHERE="),
        ("${topic", "GB016", "is not closed", "`$${`"),
        ("a ${", "GB016", "is not closed", "`$${`"),
        ("${}", "GB016", "`${}` is no reference", "${name}"),
        ("${a b}", "GB016", "`${a b}` is no reference", "${name}"),
        ("${a.b}", "GB016", "`${a.b}` is no reference", "${name}"),
        ("${upper:topic}", "GB016", "`upper` is not known", "${env:NAME}"),
        ("${secret:one}", "GB016", "is no secret", "${secret:scope/key}"),
        ("${secret:a/b/c}", "GB016", "is no secret", "${secret:scope/key}"),
        ("list: ${brokers}", "GB016", "`${brokers}` is a list", "whole value"),
        ("map: ${deep}", "GB016", "`${deep}` is a mapping", "whole value"),
    ],
)
def test_what_is_wrong_with_a_reference(text: str, code: str, message: str, hint: str) -> None:
    filler = resolver()
    filled = filler.resolve(text, OPTIONS)

    (diagnostic,) = filler.diagnostics
    assert diagnostic.code == code
    assert message in diagnostic.message
    assert hint in diagnostic.hint
    assert diagnostic.node == "s"
    assert (diagnostic.line, diagnostic.column) == (1, 28)
    assert isinstance(filled, Unknown)


def test_a_broken_parameter_is_not_reported_again() -> None:
    filled, codes = resolve("${gone}", broken=frozenset({"gone"}))

    assert isinstance(filled, Unknown)
    assert codes == []


def test_a_missing_variable_can_be_left_open() -> None:
    filled, codes = resolve("x${env:NOWHERE}", skip_env=True)

    assert isinstance(filled, Unknown)
    assert codes == []


def test_a_long_parameter_can_not_blow_up_the_file() -> None:
    text = "x" * 1_000_000
    filler = resolver(parameters={"long": text})
    filled = filler.resolve(["${long}${long}"] * 1000, OPTIONS)

    assert [d.code for d in filler.diagnostics] == ["GB008"]
    assert sum(len(item) for item in filled) < 2 * MAX_EXPANSION


# Secrets


def test_a_secret_is_not_looked_up_by_a_check() -> None:
    filler = resolver()
    whole = filler.resolve("${secret:kafka/password}", OPTIONS)
    part = filler.resolve("user=a password=${secret:kafka/password}", OPTIONS)

    assert isinstance(whole, UnresolvedSecret)
    assert isinstance(part, UnresolvedSecret)
    assert filler.secret_names == {"kafka/password"}
    assert filler.diagnostics == []


def test_a_secret_is_found_in_the_environment_first_then_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "password").write_text("from the file\n")
    environment = {"GEM_BUNDLE_SECRETS_DIR": str(tmp_path)}
    filled, codes = resolve("${secret:kafka/password}", secrets=SecretStore(environment))

    assert (filled, codes) == ("from the file", [])
    assert isinstance(filled, Secret)

    environment["GEM_BUNDLE_SECRET_KAFKA_PASSWORD"] = "from the environment"
    filled, codes = resolve("p=${secret:kafka/password}", secrets=SecretStore(environment))

    assert (filled, codes) == ("p=from the environment", [])
    assert isinstance(filled, Secret)


@pytest.mark.parametrize("name", ["../outside", "kafka/..", "./outside", "..", "/etc/passwd"])
def test_a_secret_can_not_lie_outside_its_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "secrets" / "kafka").mkdir(parents=True)
    (tmp_path / "outside").write_text("not for you")
    environment = {"GEM_BUNDLE_SECRETS_DIR": str(tmp_path / "secrets")}
    filled, codes = resolve(f"${{secret:{name}}}", secrets=SecretStore(environment))

    assert isinstance(filled, Unknown)
    assert codes == ["GB016"]


def test_a_missing_secret_says_every_place_it_looked(tmp_path: Path) -> None:
    filler = resolver(secrets=SecretStore({"GEM_BUNDLE_SECRETS_DIR": str(tmp_path)}))
    filler.resolve("${secret:my-kafka/pass.word}", OPTIONS)

    (diagnostic,) = filler.diagnostics
    assert diagnostic.code == "GB015"
    assert diagnostic.message == "the secret `my-kafka/pass.word` can't be found"
    assert diagnostic.hint == (
        "Looked at: the environment variable GEM_BUNDLE_SECRET_MY_KAFKA_PASS_WORD; "
        f"the file {tmp_path / 'my-kafka' / 'pass.word'}; Databricks secrets (not on Databricks)."
    )

    filler = resolver(secrets=SecretStore({}))
    filler.resolve("${secret:a/b}", OPTIONS)
    assert "GEM_BUNDLE_SECRETS_DIR is not set" in filler.diagnostics[0].hint


def test_secrets_found_are_hidden_in_texts() -> None:
    store = SecretStore({"GEM_BUNDLE_SECRET_A_B": "hunter2", "GEM_BUNDLE_SECRET_A_C": "hunter22"})
    store.find("a", "b")
    store.find("a", "c")

    assert hidden("hunter2 and hunter22, hunter3") == f"{HIDDEN} and {HIDDEN}, hunter3"


PIPELINE = """\
pipeline: p
parameters:
  password: ${{secret:kafka/password}}
spark: {{spark.x: "${{secret:kafka/password}}"}}
sources:
  a:
    gem: topic
    options: {{topic: t, {option}}}
targets:
  t: {{gem: sink, input: a}}
"""


@pytest.mark.parametrize(
    "option",
    [
        "password: '${secret:kafka/password}'",
        "password: '${password}'",
        "password: 'a ${password} b'",
        "limit: '${password}'",
        "maxOffsetsPerTrigger: '${secret:kafka/password}'",
        "start: '${password}'",
        "brokers: '${password}'",
        "brokers: ['${password}']",
        "brokers: ['a:1', '${password}:1']",
        "columns: '${password}'",
        "columns: [a, '${password}']",
        "shape: '${password}'",
        "every: '${password}'",
        "path: 's3a://${password}/x'",
        "spark_options: {a: '${password}'}",
    ],
)
def test_stand_ins_for_secrets_never_give_false_alarms(option: str) -> None:
    checked = check(PIPELINE.format(option=option))

    assert checked.diagnostics == []
    assert checked.ok
    assert checked.definition is not None
    assert checked.definition.secrets == {"kafka/password"}


def test_beside_a_stand_in_everything_else_is_still_checked() -> None:
    text, places = marked(
        PIPELINE.format(
            option="brokers: '${password}', start: ▶never, limit: ▶0, ▶wrong: 1,"
            "\n      columns: [a, '${password}', ▶{}], topic2: x".replace(", topic2: x", "")
        )
    )
    checked = check(text)

    assert found(checked) == sorted(
        zip(("GB205", "GB205", "GB204", "GB205"), *zip(*places, strict=True), strict=True)
    )


@pytest.mark.parametrize(
    "option",
    [
        "limit: '${password}'",
        "start: '${password}'",
        "brokers: '${password}'",
        "brokers: [x, '${password}']",
        "shape: 'a map<${password}'",
        "every: 'x ${password}'",
        "password: ['${password}']",
        "include: '${password}', exclude: x",
    ],
)
def test_values_of_secrets_are_never_said(option: str) -> None:
    store = SecretStore({"GEM_BUNDLE_SECRET_KAFKA_PASSWORD": "hunter2 at home"})
    checked = check(PIPELINE.format(option=option), LoadOptions(environment={}, secrets=store))

    assert not checked.ok
    assert "hunter2" not in "".join(map(str, checked.diagnostics))
    assert "at home" not in "".join(map(str, checked.diagnostics))


def test_a_gem_that_quotes_a_secret_is_not_listened_to() -> None:
    from gem_bundle import Facts, Finding
    from tests.core.checking import TopicOptions, TopicSource

    class Talkative(TopicSource):
        """Says what it was given."""

        options: TopicOptions

        def check(self, *inputs: Facts) -> list[Finding]:
            """A warning with the password in it."""
            password = self.options.password
            value = password.get_secret_value() if password else ""
            return [Finding("GB205", f"`{value}` is a bad password", severity="warning")]

    store = SecretStore({"GEM_BUNDLE_SECRET_KAFKA_PASSWORD": "hunter2"})
    checked = check(
        PIPELINE.format(option="password: '${password}'").replace("gem: topic", "gem: talkative"),
        LoadOptions(environment={}, secrets=store),
        source_talkative=Talkative,
    )

    assert [d.message for d in checked.diagnostics] == [f"source `a`: `{HIDDEN}` is a bad password"]


@pytest.mark.parametrize(
    "text",
    [
        "pipeline: p\ndescription: ▶${secret:a/b}",
        "pipeline: p\nparameters: {x: '${secret:a/b}'}\ndescription: ▶the ${x}",
        "pipeline: ▶${secret:a/b}",
        "pipeline: p\ncheckpoints: ▶s3a://${secret:a/b}/x",
        "pipeline: p\nsources: {a: {gem: ▶'${secret:a/b}'}}",
    ],
)
def test_secrets_can_not_stand_where_they_would_be_shown(text: str) -> None:
    clean, (place,) = marked(text)
    store = SecretStore({"GEM_BUNDLE_SECRET_A_B": "hunter2"})

    for secrets in (None, store):
        loaded = load(clean, LoadOptions(environment={}, secrets=secrets))
        assert found(loaded) == [("GB016", *place)]
        assert "hunter2" not in str(loaded.diagnostics)


# What isn't there causes one diagnostic, and not a second one about the gap it leaves


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"options: {{topic: {MARK}'${{gone}}', limit: 5}}", "GB010"),
        (f"options: {{topic: t, limit: {MARK}'${{gone}}'}}", "GB010"),
        (f"options: {{topic: t, limit: {MARK}'${{env:GONE}}'}}", "GB014"),
        (f"options: {{topic: t, brokers: {MARK}'${{env:GONE}}'}}", "GB014"),
        (f"options: {{topic: t, brokers: [{MARK}'${{env:GONE}}:9092']}}", "GB014"),
        (f"options: {MARK}${{gone}}", "GB010"),
        (f"options: {{topic: t}}\n    mode: {MARK}${{gone}}", "GB010"),
    ],
)
def test_one_gap_one_diagnostic(text: str, code: str) -> None:
    clean, (place,) = marked(
        f"pipeline: p\nsources:\n  a:\n    gem: topic\n    {text}\ntargets:\n  t: {{gem: sink, input: a}}\n"
    )

    assert found(check(clean)) == [(code, *place)]


@pytest.mark.parametrize("key", ["gem", "input", "inputs: [x", "inputs: {x"])
def test_gaps_in_the_shape_of_a_node(key: str) -> None:
    lines = {
        "gem": "gem: ▶${gone}, input: a",
        "input": "gem: mix, input: ▶${gone}",
        "inputs: [x": "gem: mix, inputs: [a, ▶'${gone}']",
        "inputs: {x": "gem: mix, inputs: {l: a, r: ▶'${gone}'}",
    }
    clean, (place,) = marked(
        "pipeline: p\nsources:\n  a: {gem: ticks}\n"
        f"transforms:\n  b: {{{lines[key]}}}\ntargets:\n  t: {{gem: sink, input: b}}\n".replace(
            "${gone}", "'${gone}'"
        ).replace("''", "'")
    )

    assert found(check(clean)) == [("GB010", *place)]
