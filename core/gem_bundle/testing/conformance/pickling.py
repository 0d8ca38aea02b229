"""What of a gem travels: options to where they are needed, and functions that Spark is handed."""

from __future__ import annotations

import pickle
from typing import Any
from unittest.mock import patch

import pytest

from gem_bundle.testing.conformance.suite import GemConformance, applies, fail, fail_for


class PicklingTests(GemConformance):
    """What has to pickle does."""

    def test_options_pickle(self) -> None:
        """Options can be sent to executors and come back equal."""
        options = self.made().options
        try:
            back = pickle.loads(pickle.dumps(options))  # noqa: S301 (our own bytes)
        except Exception as error:  # noqa: BLE001 (what a class does in its pickling is its own)
            fail(f"the options don't pickle: {type(error).__name__}: {error}")
        if back != options:
            fail(f"the options are others after they were pickled: {back!r}, not {options!r}")


class HandedOverTests(GemConformance):
    """What a target hands to Spark pickles."""

    @pytest.mark.spark
    @applies(lambda suite, gem: gem.semantics.streaming)  # type: ignore[attr-defined]  # noqa: ARG005
    def test_what_spark_is_handed_pickles(self) -> None:
        """The function of `foreachBatch` or `foreach` can be sent: over Spark Connect it runs elsewhere."""
        from pyspark.cloudpickle import dumps

        from gem_bundle.contexts import WriteContext
        from gem_bundle.testing.conformance.inputs import Folder
        from gem_bundle.testing.conformance.streams import NAME

        gem = self.live()
        handed: list[Any] = []

        def keep(original: Any) -> Any:
            def method(writer: Any, function: Any) -> Any:
                handed.append(function)
                return original(writer, function)

            return method

        given = Folder(self.folder / "given", self.schema)  # type: ignore[attr-defined]
        df = given.stream(self.spark, "given")
        kind = type(df.writeStream)
        with (
            patch.object(kind, "foreachBatch", keep(kind.foreachBatch)),
            patch.object(kind, "foreach", keep(kind.foreach)),
        ):
            context = WriteContext(node="target", pipeline=NAME, query_name=NAME)
            gem.write_stream(df, context)
        problems = []
        for function in handed:
            try:
                dumps(function)  # type: ignore[no-untyped-call]
            except Exception as error:  # noqa: BLE001 (what a class does in its pickling is its own)
                problems.append(
                    f"what Spark is handed doesn't pickle: {type(error).__name__}: {error}; keep "
                    "connections, locks and sessions out of the gem, and open them where rows are written"
                )
        fail_for(problems)
