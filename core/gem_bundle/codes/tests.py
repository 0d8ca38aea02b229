"""GB70x and GB71x: declared tests, and tests in Python."""

from __future__ import annotations

from gem_bundle.codes.code import error, note

TESTS = (
    error(
        "GB701",
        "there is no pipeline to test",
        why="""
            A test file is about one pipeline: the one that `pipeline` names, relative to the test file, or
            the one beside it whose name is the same without `.test`.
        """,
        breaks="""
            # clicks.test.yaml
            pipeline: pipelines/klicks.yaml
            tests:
              ticks arrive:
                steps:
                  - add: {ticks: [{value: 1}]}
                    expect: {screen: {count: 1}}
        """,
        keeps="""
            # clicks.test.yaml
            pipeline: clicks.yaml
            tests:
              ticks arrive:
                steps:
                  - add: {ticks: [{value: 1}]}
                    expect: {screen: {count: 1}}
        """,
    ),
    error(
        "GB702",
        "a test names a node that it can't use so",
        why="""
            Rows are given to sources, or to transforms that they would come out of, and expected of targets,
            or as `id.rejected` of what a node rejects, whether a target takes that or not. What a test gives
            must reach something that it runs: the targets named in `targets`, and what its steps expect
            something of.
        """,
        breaks="""
            # clicks.test.yaml
            tests:
              ticks arrive:
                steps:
                  - add: {tick: [{value: 1}]}
                    expect: {screen: {count: 1}}
        """,
        keeps="""
            # clicks.test.yaml
            tests:
              ticks arrive:
                steps:
                  - add: {ticks: [{value: 1}]}
                    expect: {screen: {count: 1}}
        """,
    ),
    error(
        "GB703",
        "a file of test data can't be read",
        why="""
            Rows may stand in a file beside the test: CSV with a header, JSON with a list of rows, or JSON
            with one row a line (`.jsonl`). Its path is relative to the test file.
        """,
        breaks="""
            # clicks.test.yaml
            tests:
              ticks arrive:
                steps:
                  - add: {ticks: {file: tiks.csv}}
                    expect: {screen: {count: 1}}

            # ticks.csv
            timestamp,value
            2026-01-05 09:00:00,1
        """,
        keeps="""
            # clicks.test.yaml
            tests:
              ticks arrive:
                steps:
                  - add: {ticks: {file: ticks.csv}}
                    expect: {screen: {count: 1}}

            # ticks.csv
            timestamp,value
            2026-01-05 09:00:00,1
        """,
    ),
    error(
        "GB704",
        "a value of a test doesn't fit",
        why="""
            Rows are written by the types of their columns, so that a slip of the pen isn't taken for a fault
            of the pipeline: a number isn't a text, a whole number has no fraction, a time is written as
            `2026-01-05 09:05:00`. A column that a row leaves out is null.
        """,
        breaks="""
            # clicks.test.yaml
            tests:
              ticks arrive:
                steps:
                  - add: {ticks: [{value: one}]}
                    expect: {screen: {count: 1}}
        """,
        keeps="""
            # clicks.test.yaml
            tests:
              ticks arrive:
                steps:
                  - add: {ticks: [{value: 1}]}
                    expect: {screen: {count: 1}}
        """,
    ),
    error(
        "GB705",
        "the columns of a node aren't known",
        why="""
            No source reads anything in a test: its rows come from the test, and of none come none. For that
            the columns must be known. Those of a table, or of files without a declared schema, are not.

            Say them once with `replace`, beside the rows with `schema`, or let the source read what it always
            reads with `replace: {id: {real: true}}`: a small file in the repository, say.
        """,
        breaks="""
            sources:
              ticks:
                gem: table
                options: {table: ticks}

            # clicks.test.yaml
            tests:
              ticks arrive:
                steps:
                  - add: {ticks: [{value: 1}]}
                    expect: {screen: {count: 1}}
        """,
        keeps="""
            sources:
              ticks:
                gem: table
                options: {table: ticks}

            # clicks.test.yaml
            replace:
              ticks: {schema: "timestamp timestamp, value bigint"}
            tests:
              ticks arrive:
                steps:
                  - add: {ticks: [{value: 1}]}
                    expect: {screen: {count: 1}}
        """,
    ),
    error(
        "GB706",
        "a test expects nothing",
        why="""
            A test that nothing can fail is no test. It says in some step what a target gets (`expect`), where
            the watermark is (`watermark`), or what it fails with (`fails`).
        """,
        breaks="""
            # clicks.test.yaml
            tests:
              ticks arrive:
                steps:
                  - add: {ticks: [{value: 1}]}
        """,
        keeps="""
            # clicks.test.yaml
            tests:
              ticks arrive:
                steps:
                  - add: {ticks: [{timestamp: "2026-01-05 09:00:00", value: 1}]}
                    expect:
                      screen:
                        - {timestamp: "2026-01-05 09:00:00", value: 1}
        """,
    ),
    error(
        "GB707",
        "the rows of one step came in two micro-batches",
        why="""
            Rows of one step arrive in one micro-batch, whichever sources they are for: which rows are late
            depends on it. They are put where Spark sees them while the query rests, and where the machine
            is so busy that it goes on in between, the test is begun anew. This is said after several such
            attempts.
        """,
        breaks="""
            # clicks.test.yaml
            tests:
              ticks arrive:
                steps:
                  - add: {ticks: [{value: 1}]}
                    expect: {screen: {count: 1}}

            # on a machine on which very many other things run
        """,
        keeps="""
            # clicks.test.yaml
            tests:
              ticks arrive:
                steps:
                  - add: {ticks: [{value: 1}]}
                    expect: {screen: {count: 1}}

            # on one that has a core to spare
        """,
    ),
    error(
        "GB708",
        "the tests' server has another disk",
        why="""
            Over Spark Connect the rows of a test, and the checkpoints that tell how far its queries came, lie
            in this machine's folder for temporary files. A server that doesn't see it has nothing to read.
            `TMPDIR` names another folder, one that both see; without a server tests run in a local session.
        """,
        breaks="""
            # conftest.py
            import pytest

            @pytest.fixture(scope="session")
            def spark():
                from pyspark.sql import SparkSession

                return SparkSession.builder.remote("sc://elsewhere").getOrCreate()
        """,
        keeps="""
            # conftest.py
            import pytest

            @pytest.fixture(scope="session")
            def spark():
                from pyspark.sql import SparkSession

                return SparkSession.builder.remote("sc://localhost").getOrCreate()
        """,
    ),
    note(
        "GB709",
        "a setting of the pipeline doesn't count in its tests",
        why="""
            All tests share one session. The settings of a pipeline that can change while Spark runs are set
            for its tests, and set back: the time zone, the number of shuffle partitions. One that Spark
            fixes at its start is that of the shared session.
        """,
        breaks="""
            spark:
              spark.sql.warehouse.dir: warehouse
        """,
        keeps="""
            # gem-bundle.toml
            [spark]
            "spark.sql.warehouse.dir" = "warehouse"
        """,
    ),
    error(
        "GB710",
        "nothing can advance the watermark",
        why="""
            A watermark follows the rows. `AdvanceWatermark` makes some where a source's own columns hold the
            event time. Where it is made of something else, the JSON in a message of Kafka for example, only
            the test's author knows what such a row looks like.
        """,
        breaks="""
            # test_clicks.py
            from gem_bundle.testing import AdvanceWatermark, CheckRows

            def test_the_hour_is_delivered(gem_bundle_steps):
                gem_bundle_steps("clicks.yaml", [
                    AdvanceWatermark("2026-01-05 10:00:00"),
                    CheckRows("screen", count=0),
                ])
        """,
        keeps="""
            # test_clicks.py
            from gem_bundle.testing import AdvanceWatermark, CheckRows

            def test_the_hour_is_delivered(gem_bundle_steps):
                gem_bundle_steps("clicks.yaml", [
                    AdvanceWatermark(
                        "2026-01-05 10:00:00", {"ticks": [{"timestamp": "2026-01-05 10:10:00"}]}
                    ),
                    CheckRows("screen", count=1),
                ])
        """,
    ),
)
