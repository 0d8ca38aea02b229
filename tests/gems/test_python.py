"""The transform `python`: what the function gets, what it may return, and what is said when it doesn't."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import Column, Facts, GemError, Operator, StreamReadContext
from gem_python.transform import PythonTransform
from gem_rate.micro_batch import RateMicroBatchSource
from tests.gems.draining import make

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

JOBS = """
from pyspark.sql import functions as F

def scaled(df, factor=1):
    return df.select((df.id * factor).alias("id"))

def cubed(df):
    @F.udf("bigint")
    def cube(number):
        return number ** 3

    return df.select(cube("id").alias("id"))

def both(left, right):
    return left.unionByName(right)

def split(df, at):
    return {"low": df.where(df.id < at), "high": df.where(df.id >= at)}

def nothing(df):
    df.where("true")

def rows(df):
    return [1, 2]

def pandas(df):
    import pandas
    return pandas.DataFrame({"id": [1]})

def half(df):
    return {"low": df, "high": 5}

def raises(df):
    return _deeper(df)

def _deeper(df):
    raise ValueError("no such\\ncolour")

def analysis(df):
    return df.select("nowhere")

def known(df):
    from gem_bundle import GemError
    raise GemError("GB507", "said by itself")

class Rules:
    def __init__(self, df):
        self.df = df
"""


@pytest.fixture(scope="module")
def jobs(user_modules: Path) -> Path:
    file = user_modules / "transform_jobs.py"
    file.write_text(textwrap.dedent(JOBS), encoding="utf-8")
    return file


def transform(function: str, *names: str, **raw: Any) -> PythonTransform:
    gem = make(PythonTransform, {"function": f"transform_jobs:{function}", **raw})
    assert isinstance(gem, PythonTransform)
    gem.input_names = names or ("clicks",)
    return gem


# Without a JVM


@pytest.mark.programs
def test_nothing_is_imported_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "never_jobs.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from gem_bundle import Facts\n"
        "from gem_python.transform import PythonTransform\n"
        "options = PythonTransform.options_type.model_validate({'function': 'never_jobs:clean'})\n"
        "gem = PythonTransform(options)\n"
        "print(list(gem.check(Facts())), gem.infer(Facts()), gem.outputs(), list(gem.connect()))\n"
        "print({'never_jobs', 'pyspark'} & set(sys.modules))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_what_is_known_of_the_result() -> None:
    stream = Facts(streaming=True, columns=(Column("id", "bigint"),)).after(Operator("aggregate"))
    facts = transform("scaled").infer(stream, Facts(streaming=False))
    assert (facts.streaming, facts.columns) == (True, None)
    assert [o.kind for o in facts.all_operators()] == ["unknown", "aggregate"]
    assert transform("scaled").infer(Facts(streaming=False)).streaming is False
    assert transform("split", outputs="low, high").outputs() == ("low", "high")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"function": "clean"}, "write a function as `module:name`"),
        ({"function": "jobs:clean", "outputs": ["a b"]}, "letters, digits and underscores, not `a b`"),
        ({"function": "jobs:clean", "outputs": ["a", "a"]}, "the output `a` is named twice"),
    ],
)
def test_options_that_are_wrong(raw: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        PythonTransform.options_type.model_validate(raw)


# With one


@pytest.mark.spark
@pytest.mark.usefixtures("jobs")
class TestApply:
    def refusal(self, gem: PythonTransform, *inputs: Any) -> GemError:
        with pytest.raises(GemError) as caught:
            gem.apply(*inputs)
        assert caught.value.code == "GB507"
        return caught.value

    def test_one_input_and_arguments(self, spark: SparkSession) -> None:
        found = transform("scaled", arguments={"factor": 3}).apply(spark.range(3))
        assert [row.id for row in found.collect()] == [0, 3, 6]  # type: ignore[union-attr]

    @pytest.mark.parametrize("form", ["parquet", "delta"])
    def test_a_function_of_rows_comes_to_an_end_behind_rows_in_columns(
        self, form: str, spark: SparkSession, tmp_path: Path
    ) -> None:
        """Spark 4.2.0 waits for ever there, unless it is told otherwise: without a bound this test would too."""
        data, out = str(tmp_path / "data"), str(tmp_path / "out")
        spark.range(4).write.format(form).save(data)
        reader = StreamReadContext(node="numbers", spark=spark, name="numbers").reader.format(form)
        stream = (reader if form == "delta" else reader.schema("id bigint")).load(data)
        writer = transform("cubed").apply(stream).writeStream.format("parquet")  # type: ignore[union-attr]
        query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start(out)
        try:
            assert query.awaitTermination(180)
        finally:
            query.stop()
        assert sorted(row.id for row in spark.read.parquet(out).collect()) == [0, 1, 8, 27]

    def test_inputs_are_given_in_their_order(self, spark: SparkSession) -> None:
        found = transform("both", "left", "right").apply(spark.range(2), spark.range(5, 6))
        assert [row.id for row in found.collect()] == [0, 1, 5]  # type: ignore[union-attr]

    def test_several_outputs(self, spark: SparkSession) -> None:
        found = transform("split", outputs=["high", "low"], arguments={"at": 2}).apply(spark.range(3))
        assert isinstance(found, dict)
        assert {name: [row.id for row in df.collect()] for name, df in found.items()} == {
            "low": [0, 1],
            "high": [2],
        }

    def test_streams_go_through(self, spark: SparkSession) -> None:
        source = make(RateMicroBatchSource, {"rows_per_batch": 5})
        stream = source.read_stream(StreamReadContext(node="rate", spark=spark, name="rate"))
        found = transform("scaled").apply(stream.withColumnRenamed("value", "id"))
        assert found.isStreaming  # type: ignore[union-attr]

    @pytest.mark.parametrize(
        ("function", "raw", "said", "hint"),
        [
            ("nothing", {}, "returned nothing; is a `return` missing?", "Return a Spark DataFrame."),
            ("rows", {}, "returned a value of type `list`", "Return a Spark DataFrame."),
            ("pandas", {}, "returned a `pandas` DataFrame", "Return a Spark DataFrame."),
            ("Rules", {}, "returned a `transform_jobs` Rules", "Return a Spark DataFrame."),
            (
                "split",
                {"arguments": {"at": 1}},
                "`outputs` doesn't name its DataFrames",
                "Return a Spark DataFrame.",
            ),
            (
                "scaled",
                {"outputs": ["a", "b"]},
                "and the option `outputs` names several",
                "`a`, `b` to Spark",
            ),
            (
                "half",
                {"outputs": ["low", "high"]},
                "returned a value of type `int` as the output `high`",
                "mapping",
            ),
            (
                "half",
                {"outputs": ["low"]},
                "returned `high`, which is not in the option `outputs`",
                "mapping",
            ),
            ("half", {"outputs": ["low", "high", "mid"]}, "did not return the output `mid`", "mapping"),
        ],
    )
    def test_what_it_may_not_return(
        self, spark: SparkSession, function: str, raw: dict[str, Any], said: str, hint: str
    ) -> None:
        error = self.refusal(transform(function, **raw), spark.range(1))
        assert error.message.startswith(f"`transform_jobs:{function}` ")
        assert said in error.message
        assert hint in error.hint
        assert error.option == ("outputs" if "outputs" in raw else "function")

    def test_an_exception_has_the_users_file_and_line(self, spark: SparkSession, jobs: Path) -> None:
        error = self.refusal(transform("raises"), spark.range(1))
        line = JOBS.splitlines().index('    raise ValueError("no such\\ncolour")') + 1
        assert error.message == f"`transform_jobs:raises` raised ValueError: no such ({jobs}:{line})"
        assert isinstance(error.__cause__, ValueError)

    def test_an_exception_of_spark_has_them_too(self, spark: SparkSession, jobs: Path) -> None:
        error = self.refusal(transform("analysis"), spark.range(1))
        line = JOBS.splitlines().index('    return df.select("nowhere")') + 1
        assert "raised AnalysisException: [UNRESOLVED_COLUMN" in error.message
        assert error.message.endswith(f"({jobs}:{line})")
        assert "\n" not in error.message

    def test_what_a_gem_error_says_stays(self, spark: SparkSession) -> None:
        assert self.refusal(transform("known"), spark.range(1)).message == "said by itself"

    @pytest.mark.parametrize(
        ("names", "raw", "said", "option"),
        [
            (("a", "b"), {}, "is called with (a, b) but takes nothing(df): too many positional", "function"),
            (
                ("a",),
                {"arguments": {"x": 1}},
                "is called with (a, x) but takes nothing(df): got an",
                "arguments",
            ),
        ],
    )
    def test_a_function_that_takes_something_else(
        self, spark: SparkSession, names: tuple[str, ...], raw: dict[str, Any], said: str, option: str
    ) -> None:
        error = self.refusal(transform("nothing", *names, **raw), *[spark.range(1)] * len(names))
        assert said in error.message
        assert error.option == option

    def test_a_function_that_does_not_exist(self, spark: SparkSession) -> None:
        with pytest.raises(GemError) as caught:
            transform("scalde").apply(spark.range(1))
        assert (caught.value.code, caught.value.hint) == ("GB506", "Did you mean `scaled`?")
