"""Parameters: their types, where values come from, profiles, and what is wrong with them."""

from typing import Any

import pytest

from gem_bundle.pipeline.document import Unknown
from gem_bundle.pipeline.loader import Loaded, LoadOptions
from gem_bundle.pipeline.secrets import Secret, SecretStore
from tests.core.checking import found, load, marked

BASE = "pipeline: p\nsources: {a: {gem: ticks}}\ntargets: {t: {gem: sink, input: a}}\n"


def loaded(text: str, **options: Any) -> Loaded:
    return load(text + BASE, LoadOptions(**{"environment": {}, **options}))


def values(text: str, **options: Any) -> dict[str, Any]:
    result = loaded(text, **options)
    assert result.diagnostics == []
    assert result.definition is not None
    return result.definition.values


@pytest.mark.parametrize(
    ("declaration", "kind", "default"),
    [
        ("clicks", "string", "clicks"),
        ("'5'", "string", "5"),
        ("''", "string", ""),
        ("5", "integer", 5),
        ("0.5", "number", 0.5),
        ("true", "boolean", True),
        ("[a, b]", "list", ["a", "b"]),
        ("{a: 1}", "mapping", {"a": 1}),
        ("{}", "mapping", {}),
        ("{default: 5}", "integer", 5),
        ("{default: 5, description: Five.}", "integer", 5),
        ("{type: number, default: 5}", "number", 5),
        ("{type: string, default: x}", "string", "x"),
        ("{type: mapping, default: {type: x}}", "mapping", {"type": "x"}),
        ("{type: x}", None, None),
        ("{kind: x}", "mapping", {"kind": "x"}),
    ],
)
def test_the_default_gives_the_type(declaration: str, kind: str | None, default: object) -> None:
    result = loaded(f"parameters: {{x: {declaration}}}\n")
    assert result.definition is not None
    parameter = result.definition.parameters.get("x")

    if kind is None:
        assert parameter is None
        return
    assert parameter is not None
    assert (parameter.type, parameter.default) == (kind, default)
    assert not parameter.required
    assert result.definition.values == {"x": default}
    assert result.diagnostics == []


def test_a_description_and_a_required_parameter() -> None:
    text = "parameters: {x: {type: list, description: Names.}}\n"
    definition = loaded(text, parameters={"x": "a"}).definition

    assert definition is not None
    assert definition.parameters["x"].required
    assert definition.parameters["x"].description == "Names."


def test_given_wins_over_the_profile_and_that_over_the_default() -> None:
    text = (
        "parameters: {a: 1, b: 1, c: 1, d: {type: integer}}\n"
        "profiles: {prod: {a: 2, b: 2, d: 2}, test: {a: 3}, empty: }\n"
    )

    assert values(text, profile="prod", parameters={"a": "9"}) == {"a": 9, "b": 2, "c": 1, "d": 2}
    assert values(text, profile="test", parameters={"d": 4}) == {"a": 3, "b": 1, "c": 1, "d": 4}
    assert values(text, profile="empty", parameters={"d": 4}) == {"a": 1, "b": 1, "c": 1, "d": 4}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", "5", "5"),
        ("string", "", ""),
        ("string", "a: [", "a: ["),
        ("integer", "10", 10),
        ("integer", "-1", -1),
        ("number", "10", 10),
        ("number", "1e3", 1000.0),
        ("boolean", "true", True),
        ("boolean", "False", False),
        ("list", "a,b, c", ["a", "b", "c"]),
        ("list", "a", ["a"]),
        ("list", "", []),
        ("list", "[1, x]", [1, "x"]),
        ("mapping", "{a: 1}", {"a": 1}),
        ("mapping", "a: 1", {"a": 1}),
    ],
)
def test_texts_from_the_command_line_are_read_as_the_type(kind: str, text: str, value: object) -> None:
    assert values(f"parameters: {{x: {{type: {kind}}}}}\n", parameters={"x": text}) == {"x": value}


@pytest.mark.parametrize(
    ("kind", "text", "hint"),
    [
        ("integer", "1.5", "whole number"),
        ("integer", "ten", "whole number"),
        ("integer", "true", "whole number"),
        ("integer", "", "whole number"),
        ("integer", "[", "whole number"),
        ("number", "x", "-p x=0.5"),
        ("boolean", "yes", "-p x=true"),
        ("boolean", "1", "-p x=true"),
        ("list", "[a", "-p x=a,b"),
        ("list", "[!tag a]", "-p x=a,b"),
        ("mapping", "a", "{a: 1}"),
        ("mapping", "{a: \udcff}", "{a: 1}"),
    ],
)
def test_texts_that_can_not_be_read_as_the_type(kind: str, text: str, hint: str) -> None:
    clean, (place,) = marked(f"parameters: {{x: ▶{{type: {kind}}}}}\n")
    result = loaded(clean, parameters={"x": text})

    assert found(result) == [("GB012", *place)]
    assert hint in result.diagnostics[0].hint


@pytest.mark.parametrize(
    ("kind", "value"),
    [("string", 5), ("integer", True), ("integer", 1.5), ("boolean", 1), ("list", {}), ("number", None)],
)
def test_values_from_python_have_the_type(kind: str, value: object) -> None:
    result = loaded(f"parameters: {{x: {{type: {kind}}}}}\n", parameters={"x": value})

    assert [d.code for d in result.diagnostics] == ["GB012"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("parameters: ▶[a]\n", "GB005"),
        ("parameters: ▶text\n", "GB005"),
        ("parameters: {x: ▶}\n", "GB005"),
        ("parameters: {x: ▶{description: y}}\n", "GB005"),
        ("parameters: {x: {default: ▶null}}\n", "GB005"),
        ("parameters: {x: {type: ▶text, default: y}}\n", "GB005"),
        ("parameters: {x: {type: ▶5}}\n", "GB005"),
        ("parameters: {x: {type: ▶[a]}}\n", "GB005"),
        ("parameters: {x: {type: integer, default: ▶five}}\n", "GB012"),
        ("parameters: {x: {type: integer, default: ▶1.5}}\n", "GB012"),
        ("parameters: {x: {type: string, default: ▶5}}\n", "GB012"),
        ("parameters: {x: {type: integer, default: 1, ▶defualt: 5}}\n", "GB004"),
        ("parameters: {▶1x: 5}\n", "GB017"),
        ("parameters: {▶a-b: 5}\n", "GB017"),
        ("parameters: {▶'a\\n': 5}\n".replace("'", '"'), "GB017"),
        ("parameters: {▶x: {type: integer}}\n", "GB011"),
        ("profiles: ▶[a]\n", "GB005"),
        ("profiles: {prod: ▶[a]}\n", "GB005"),
        ("parameters: {x: 1}\nprofiles: {prod: {▶y: 2}}\n", "GB010"),
        ("parameters: {x: 1}\nprofiles: {prod: {x: ▶two}}\n", "GB012"),
        ("parameters: {x: a}\nprofiles: {prod: {x: ▶2}}\n", "GB012"),
        ("parameters: {x: 1, y: ▶'${x}'}\n", "GB016"),
        ("parameters: {x: ▶'${env:NOT_THERE}'}\n", "GB014"),
        ("parameters: {x: [1, ▶'${env:NOT_THERE}']}\n", "GB014"),
        ("parameters: {x: {type: integer, default: ▶'${env:WORD}'}}\n", "GB012"),
    ],
)
def test_what_is_wrong_is_placed(text: str, code: str) -> None:
    clean, (place,) = marked(text)
    result = loaded(clean, environment={"WORD": "word"})

    assert found(result) == [(code, *place)]
    assert result.diagnostics[0].message


def test_everything_at_once() -> None:
    text, places = marked(
        "parameters:\n"
        "  a:▶\n"
        "  ▶1b: 2\n"
        "  c: {type: integer, default: ▶x}\n"
        "  ▶d: {type: list}\n"
        "  e: ▶'${env:NOT_THERE}'\n"
        "profiles: {one: {▶z: 1}, two: ▶5}\n"
    )
    codes = ("GB005", "GB017", "GB012", "GB011", "GB014", "GB010", "GB005")

    assert sorted((line, column, code) for code, line, column in found(loaded(text))) == [
        (*place, code) for place, code in zip(places, codes, strict=True)
    ]


def test_an_unknown_profile_names_the_known_ones() -> None:
    text, (place,) = marked("▶profiles: {prod: {}, test: {}}\n")
    result = loaded(text, profile="prdo")

    assert found(result) == [("GB013", *place)]
    assert result.diagnostics[0].hint == "Did you mean `prod`?"
    (without,) = loaded("", profile="prod").diagnostics
    assert (without.code, without.line) == ("GB013", 0)


def test_an_unknown_parameter_on_the_command_line() -> None:
    text, (place,) = marked("▶parameters: {topic: a}\n")
    result = loaded(text, parameters={"topci": "b"})

    assert found(result) == [("GB010", *place)]
    assert result.diagnostics[0].hint == "Did you mean `topic`?"
    assert "-p topci=" in result.diagnostics[0].message


def test_a_parameter_that_is_broken_in_the_file_can_still_be_given() -> None:
    result = loaded("parameters: {x: }\n", parameters={"x": "1"})

    assert [d.code for d in result.diagnostics] == ["GB005"]


def test_parameters_need_no_value_where_nothing_is_run() -> None:
    assert values("parameters: {x: {type: integer}}\n", require_parameters=False) == {}


# References in values


def test_values_may_refer_to_the_environment() -> None:
    text = (
        "parameters:\n"
        "  whole: ${env:NAME}\n"
        "  part: '<${env:NAME}>'\n"
        "  nested: ['${env:NAME}', {a: '${env:NAME}'}]\n"
        "  port: {type: integer, default: '${env:PORT}'}\n"
        "  hosts: {type: list, default: '${env:HOSTS}'}\n"
        "  literal: '$${x}'\n"
        "profiles: {prod: {whole: 'prod-${env:NAME}', port: '${env:OTHER}'}}\n"
    )
    environment = {"NAME": "n", "PORT": "9092", "HOSTS": "a,b", "OTHER": "1"}

    assert values(text, environment=environment) == {
        "whole": "n",
        "part": "<n>",
        "nested": ["n", {"a": "n"}],
        "port": 9092,
        "hosts": ["a", "b"],
        "literal": "${x}",
    }
    prod = values(text, environment=environment, profile="prod")
    assert (prod["whole"], prod["port"]) == ("prod-n", 1)


def test_only_the_value_that_is_used_is_looked_up() -> None:
    text = (
        "parameters: {x: '${env:NOT_THERE}'}\nprofiles: {a: {x: '${env:NOT_THERE_EITHER}'}, b: {x: there}}\n"
    )

    assert values(text, profile="b") == {"x": "there"}
    assert values(text, parameters={"x": "given"}) == {"x": "given"}


def test_a_missing_variable_is_reported_at_the_profile_that_refers_to_it() -> None:
    text, (place,) = marked("parameters: {x: 1}\nprofiles: {a: {x: ▶'${env:GONE}'}}\n")

    assert found(loaded(text, profile="a")) == [("GB014", *place)]


def test_values_may_be_secrets() -> None:
    text = "parameters: {x: '${secret:a/b}', n: {type: integer, default: '${secret:a/n}'}}\n"
    result = loaded(text)

    assert result.diagnostics == []
    assert result.definition is not None
    assert result.definition.secrets == {"a/b", "a/n"}
    assert all(isinstance(value, Unknown) for value in result.definition.values.values())

    store = SecretStore({"GEM_BUNDLE_SECRET_A_B": "hunter2", "GEM_BUNDLE_SECRET_A_N": "5"})
    assert values(text, secrets=store) == {"x": "hunter2", "n": 5}

    brokers = {"GEM_BUNDLE_SECRET_A_B": "hunter2,[x]"}
    listed = values("parameters: {x: {type: list, default: '${secret:a/b}'}}\n", secrets=SecretStore(brokers))
    assert listed == {"x": ["hunter2", "[x]"]}
    assert all(isinstance(item, Secret) for item in listed["x"])

    store = SecretStore({"GEM_BUNDLE_SECRET_A_B": "x", "GEM_BUNDLE_SECRET_A_N": "hunter2"})
    (diagnostic,) = loaded(text, secrets=store).diagnostics
    assert diagnostic.code == "GB012"
    assert "hunter2" not in str(diagnostic)
