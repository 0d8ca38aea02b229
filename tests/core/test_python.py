"""User functions: how they are found, what is said when they aren't, and what Spark's texts say of them."""

from __future__ import annotations

import importlib
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from gem_bundle import GemError, import_function
from gem_bundle.python import UserError, bring_along, user_error

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is first on Python's path, as a pipeline file's is."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / f"{name.replace('.', '/')}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    return file


def refusal(reference: str) -> GemError:
    with pytest.raises(GemError) as caught:
        import_function(reference)
    assert caught.value.option == "function"
    return caught.value


# Finding


def test_a_function_a_class_and_a_method(beside: Path) -> None:
    write(
        beside,
        "found_jobs",
        "class Rules:\n    @staticmethod\n    def apply(): return 7\ndef clean(): return 8\n",
    )
    assert import_function("found_jobs:clean")() == 8
    assert import_function("found_jobs:Rules").__name__ == "Rules"
    assert import_function("found_jobs:Rules.apply")() == 7


def test_targets_of_a_group_import_one_after_the_other(beside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Python's own `invalidate_caches` fails now and then where two threads are in it.
    (beside / "jobs_of_many.py").write_text("def clean(df): return df\n")
    inside: list[int] = []
    most = []

    def invalidate() -> None:
        inside.append(1)
        most.append(len(inside))
        for _ in range(2_000):
            pass
        inside.pop()

    monkeypatch.setattr(importlib, "invalidate_caches", invalidate)
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(import_function, ["jobs_of_many:clean"] * 24))
    finally:
        sys.setswitchinterval(switch)
    assert len(set(found)) == 1
    assert max(most) == 1


def test_a_function_of_a_package(beside: Path) -> None:
    write(beside, "found_package.__init__", "")
    write(beside, "found_package.clean", "def rows(): return 9\n")
    assert import_function("found_package.clean:rows")() == 9
    assert import_function("textwrap:dedent") is textwrap.dedent


def test_two_pipelines_with_modules_of_the_same_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("first", "second"):
        folder = tmp_path / name
        write(
            folder,
            "same_name_jobs",
            f"import same_name_helper\ndef who(): return same_name_helper.NAME, '{name}'\n",
        )
        write(folder, "same_name_helper", f"NAME = '{name}'\n")
        with monkeypatch.context() as path:
            path.syspath_prepend(folder)
            # The helper is imported by the module, and not by us: it is forgotten with its folder.
            assert import_function("same_name_jobs:who")() == (name, name)
            assert import_function("same_name_jobs:who") is import_function("same_name_jobs:who")


# What is said


def test_a_module_that_does_not_exist() -> None:
    error = refusal("nowhere_jobs.clean:rows")
    assert (error.code, error.message) == ("GB506", "there is no Python module `nowhere_jobs.clean`")
    assert "Put `nowhere_jobs/clean.py` beside the pipeline file" in error.hint


def test_a_name_that_does_not_exist(beside: Path) -> None:
    write(beside, "named_jobs", "LIMIT = 5\ndef clean(): ...\ndef _private(): ...\nclass Rules: ...\n")
    error = refusal("named_jobs:claen")
    assert (error.code, error.message, error.hint) == (
        "GB506",
        "`named_jobs` has no `claen`",
        "Did you mean `clean`?",
    )
    assert refusal("named_jobs:zzz").hint == "Known names there: `Rules`, `clean`."
    assert refusal("named_jobs:Rules.apply").code == "GB506"
    assert refusal("named_jobs:LIMIT").message == "`named_jobs:LIMIT` is a int, not a function or a class"
    assert refusal("named_jobs:LIMIT.real.zzz").code == "GB506"


def test_a_module_with_the_name_of_one_of_python() -> None:
    assert "give yours another name" in refusal("queue:clean").hint


def test_a_module_that_needs_what_is_not_installed(beside: Path) -> None:
    write(beside, "needing_jobs", "import not_installed_anywhere\n")
    error = refusal("needing_jobs:clean")
    assert error.code == "GB507"
    assert (
        error.message
        == "importing `needing_jobs` fails: it needs `not_installed_anywhere`, which isn't installed"
    )


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("raising_jobs", "\nraise ValueError('no\\nway')", "ValueError: no\nway ({file}:2)"),
        ("exiting_jobs", "import sys\nsys.exit('bye')", "SystemExit: bye ({file}:2)"),
        ("broken_jobs", "def f(:\n    ...", "SyntaxError: invalid syntax ({file}:1)"),
        ("nested_jobs", "def f():\n    assert False\nf()", "AssertionError ({file}:2)"),
        (
            "reading_jobs",
            "import json\njson.loads('x')",
            "JSONDecodeError: Expecting value: line 1 column 1 (char 0) ({file}:2)",
        ),
    ],
)
def test_a_module_that_fails(beside: Path, name: str, text: str, said: str) -> None:
    file = write(beside, name, text)
    error = refusal(f"{name}:clean")
    assert error.code == "GB507"
    assert error.message == f"importing `{name}` fails: {said.format(file=file)}"
    assert error.__cause__ is not None


# What Spark says (texts of Spark 4.2.0, shortened)

PLAN = (
    " SQLSTATE: 39000 SQLSTATE: XXKST\n=== Streaming Query ===\n"
    "Identifier: [id = 1, runId = 2]\nCurrent Committed Offsets: {}\n"
)
IN_FOREACH_BATCH = (
    "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] An "
    "error occurred in the user provided function in foreach batch sink. Reason: An exception was raised by the "
    "Python Proxy. Return Message: Traceback (most recent call last):\n"
    '  File "/venv/lib/python3.11/site-packages/py4j/clientserver.py", line 644, in _call_proxy\n'
    "    return_value = getattr(self.pool[obj_id], method)(*params)\n"
    "                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
    '  File "/venv/lib/python3.11/site-packages/pyspark/sql/utils.py", line 163, in call\n'
    "    self.func(DataFrame(jdf, wrapped_session_jdf), batch_id)\n"
    '  File "/pipelines/jobs.py", line 10, in save\n'
    '    raise ValueError("no place for batch\\n%d" % batch_id)\n'
    "ValueError: no place for batch\n0\n"
)
UDF_IN_FOREACH_BATCH = (
    "[STREAM_FAILED] Return Message: Traceback (most recent call last):\n"
    '  File "/pipelines/jobs.py", line 13, in save\n'
    '    df.select(half("value")).collect()\n'
    '  File "/venv/lib/python3.11/site-packages/pyspark/errors/exceptions/captured.py", line 257, in deco\n'
    "    raise converted from None\n"
    "pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:\n"
    "Traceback (most recent call last):\n"
    '  File "/pipelines/helpers.py", line 3, in half\n'
    "    return x // 0\n"
    "           ~~^^~~\n"
    "ZeroDivisionError: integer division or modulo by zero\n"
)
NO_SUCH_MODULE = (
    "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):\n"
    '  File "/venv/lib/python3.11/site-packages/pyspark/python/lib/pyspark.zip/pyspark/worker.py", line 3592, in main\n'
    "    func, profiler, deserializer, serializer = read_command(pickleSer, infile)\n"
    "ModuleNotFoundError: No module named 'jobs'\n"
)
CHAINED = (
    "Traceback (most recent call last):\n"
    '  File "/pipelines/jobs.py", line 2, in process\n'
    '    {}["x"]\n'
    "KeyError: 'x'\n"
    "\n"
    "The above exception was the direct cause of the following exception:\n"
    "\n"
    "Traceback (most recent call last):\n"
    '  File "/pipelines/jobs.py", line 4, in process\n'
    '    raise OSError("disk: full") from e\n'
    "OSError: disk: full\n"
)
ANALYSIS = (
    "Traceback (most recent call last):\n"
    '  File "/pipelines/jobs.py", line 7, in save\n'
    '    df.select("x")\n'
    '  File "/usr/lib/python3/dist-packages/pyspark/sql/classic/dataframe.py", line 991, in select\n'
    "    jdf = self._jdf.select(self._jcols(*cols))\n"
    "pyspark.errors.exceptions.captured.AnalysisException: [UNRESOLVED_COLUMN] `x` cannot be resolved. SQLSTATE: "
    "42703;\n'Project ['x]\n+- Range\n"
)
BARE = (
    "Traceback (most recent call last):\n"
    '  File "<frozen importlib._bootstrap>", line 1, in _find\n'
    '  File "/opt/conda/lib/python3.11/json/decoder.py", line 355, in raw_decode\n'
    "StopIteration\n"
    "\tat org.apache.spark.api.python.BasePythonRunner.run(PythonRunner.scala:1)\n"
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (IN_FOREACH_BATCH + PLAN, UserError("ValueError", "no place for batch\n0", "/pipelines/jobs.py", 10)),
        (
            UDF_IN_FOREACH_BATCH + PLAN,
            UserError("ZeroDivisionError", "integer division or modulo by zero", "/pipelines/helpers.py", 3),
        ),
        (NO_SUCH_MODULE + PLAN, UserError("ModuleNotFoundError", "No module named 'jobs'")),
        (CHAINED + PLAN, UserError("OSError", "disk: full", "/pipelines/jobs.py", 4)),
        (
            ANALYSIS,
            UserError(
                "AnalysisException", "[UNRESOLVED_COLUMN] `x` cannot be resolved.", "/pipelines/jobs.py", 7
            ),
        ),
        (BARE, UserError("StopIteration", "")),
        ("[STREAM_FAILED] Query terminated with exception: no Python here", None),
        ("Traceback (most recent call last):\n  cut off", None),
    ],
    ids=[
        "foreachBatch",
        "UDF inside",
        "executor",
        "chained",
        "analysis",
        "nothing of the user's",
        "none",
        "cut off",
    ],
)
def test_what_the_users_code_raised(text: str, wanted: UserError | None) -> None:
    assert user_error(text) == wanted


def test_an_exception_itself(beside: Path) -> None:
    file = write(
        beside,
        "excepting_jobs",
        "def f():\n    try:\n        {}['x']\n    except KeyError as e:\n        raise OSError('full') from e\n",
    )
    with pytest.raises(OSError, match="full") as caught:
        import_function("excepting_jobs:f")()
    assert user_error(caught.value) == UserError("OSError", "full", str(file), 5)
    assert user_error(ValueError("never raised")) == UserError("ValueError", "never raised")
    assert user_error(ExceptionGroup("all", [ValueError("one")])) == UserError(
        "ExceptionGroup", "all (1 sub-exception)"
    )


def test_in_one_line() -> None:
    assert str(UserError("ValueError", "no", "/p/jobs.py", 3)) == "ValueError: no (/p/jobs.py:3)"
    assert str(UserError("StopIteration", "")) == "StopIteration"


def test_what_a_program_brought_is_sent_to_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of an archive, which a bundle's modules lie in, with the others of the same bundle."""
    from pyspark import cloudpickle

    with ZipFile(tmp_path / "bundle.zip", "w") as archive:
        archive.writestr("brought_jobs.py", "import brought_words.more\ndef f(): pass\n")
        archive.writestr("brought_words/__init__.py", "")
        archive.writestr("brought_words/more.py", "")
    monkeypatch.syspath_prepend(str(tmp_path / "bundle.zip"))
    monkeypatch.setattr("gem_bundle.python._BROUGHT", set())
    bring_along(["brought_jobs", "brought_words.more"])
    over_connect = False
    monkeypatch.setattr("gem_bundle.python._is_over_connect", lambda: over_connect)

    def sent() -> set[str]:
        import_function("brought_jobs:f")
        registered: set[str] = cloudpickle.list_registry_pickle_by_value()  # type: ignore[no-untyped-call]
        return {name for name in registered if name.startswith("brought_")}

    assert sent() == set()
    over_connect = True
    assert sent() == {"brought_jobs", "brought_words", "brought_words.more"}
    for name in sent():
        cloudpickle.unregister_pickle_by_value(sys.modules[name])  # type: ignore[no-untyped-call]


# On executors


@pytest.mark.spark
class TestExecutors:
    JOBS = """
        import {helper}
        from pyspark.sql.functions import udf
        @udf("long")
        def twice(x):
            return {helper}.times(x, 2)
        def doubled(df):
            return df.select(twice("id").alias("id"))
    """

    def doubled(self, spark: SparkSession, folder: Path, jobs: str) -> list[int]:
        write(folder, jobs, self.JOBS.format(helper=f"{jobs}_helper"))
        write(folder, f"{jobs}_helper", "def times(a, b): return a * b\n")
        function = import_function(f"{jobs}:doubled")
        return [row.id for row in function(spark.range(3)).collect()]

    def test_a_udf_beside_the_pipeline_file(self, spark: SparkSession, user_modules: Path) -> None:
        from pyspark import cloudpickle

        assert str(user_modules) in sys.path
        assert self.doubled(spark, user_modules, "shared_udf_jobs") == [0, 2, 4]
        assert "shared_udf_jobs" not in cloudpickle.list_registry_pickle_by_value()  # type: ignore[no-untyped-call]

    def test_a_udf_of_a_module_that_executors_can_not_import(self, spark: SparkSession, beside: Path) -> None:
        assert self.doubled(spark, beside, "sent_udf_jobs") == [0, 2, 4]
