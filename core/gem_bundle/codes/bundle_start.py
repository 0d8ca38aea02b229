"""GB66x: the start of a bundle, its lease, and the proof that it works."""

from __future__ import annotations

from gem_bundle.codes.code import error, warning

BUNDLE_START = (
    error(
        "GB660",
        "the stream is running already",
        why="""
            Another run holds the lease beside the checkpoint and shows every few seconds that it lives; the
            message says which one, and on which machine. A job that is started again and again, to see to
            it that the stream runs, passes `--keep-alive`: then this is no error, and it ends at once.

            A run that died without a word is taken for dead after thirty seconds, on its own machine at once.
        """,
        breaks="$ ./submit.sh --master yarn & ./submit.sh --master yarn",
        keeps="$ ./submit.sh --master yarn -- --keep-alive",
    ),
    error(
        "GB661",
        "the lease was lost",
        why="""
            Another run took the lease over, since this one was suspended or couldn't reach the checkpoint's
            store, or somebody removed the file. The run let its micro-batches end and stopped; what it
            committed stays, and the other run goes on from there.
        """,
        breaks="$ rm checkpoints/clicks/.screen.lease.1",
        keeps="$ ./submit.sh --master yarn -- --keep-alive",
    ),
    error(
        "GB662",
        "no lease can be kept beside the checkpoint",
        why="""
            `--keep-alive` has to know whether the stream runs, and a lease beside the checkpoint tells it. It
            is read and written through fsspec, which needs a package for each kind of store: s3fs for
            `s3a:`, gcsfs for `gs:`, adlfs for `abfss:`.
        """,
        breaks="$ ./submit.sh --master yarn -- --keep-alive -p checkpoints=s3a://web/checkpoints",
        keeps="""
            $ pip install s3fs
            $ gem-bundle build clicks.yaml
        """,
    ),
    warning(
        "GB663",
        "the run has no lease",
        why="""
            Nothing here can read and write files beside the checkpoint, so a second run on it can't be
            noticed before it starts. Should there be one, Spark's commit log lets one of the two commit a
            micro-batch and makes the other one fail: no row is lost or doubled.
        """,
        breaks="$ ./submit.sh --master yarn -- -p checkpoints=s3a://web/checkpoints",
        keeps="""
            $ pip install s3fs
            $ gem-bundle build clicks.yaml
        """,
    ),
    error(
        "GB664",
        "the bundle was built for another Spark or Java",
        why="""
            The jars of Kafka, Delta and Avro are made for one minor version of Spark, and fail on another one
            in the middle of a run. Build the bundle where the pyspark of the cluster's version is installed.
        """,
        breaks="$ SPARK_HOME=/opt/spark-4.0.1 ./submit.sh --master yarn",
        keeps="$ SPARK_HOME=/opt/spark-4.2.0 ./submit.sh --master yarn",
    ),
    warning(
        "GB665",
        "the bundle was built for another version",
        why="""
            Nothing in the bundle is made for one version of Python or Spark only, so it runs; but its
            pipelines were checked for the version that it was built for, and may use what is missing here.
        """,
        breaks="$ PYSPARK_PYTHON=python3.12 ./submit.sh --master yarn",
        keeps="$ PYSPARK_PYTHON=python3.11 ./submit.sh --master yarn",
    ),
    error(
        "GB666",
        "a part of the bundle can't be used in a clean environment",
        why="""
            `gem-bundle verify` loads every gem and every module of the bundle where nothing but pyspark is
            installed, on the driver and on executors. What works on the building machine only, because
            something else is installed there, is found so before a cluster finds it.
        """,
        breaks="""
            transforms:
              clean: {gem: python, input: ticks, options: {function: "jobs:clean"}}

            # jobs.py
            import requests  # which no distribution in the bundle requires

            def clean(ticks):
                return ticks.where("value > 0")

            $ gem-bundle verify dist/clicks-0.1.0+g0123456789ab
        """,
        keeps="""
            transforms:
              clean: {gem: python, input: ticks, options: {function: "jobs:clean"}}

            # jobs.py
            def clean(ticks):
                return ticks.where("value > 0")

            $ gem-bundle verify dist/clicks-0.1.0+g0123456789ab
        """,
    ),
    error(
        "GB667",
        "the bundle can't be proved here",
        why="""
            To prove a bundle, `gem-bundle verify` makes an environment that is thrown away afterwards. For a
            thin bundle pip installs into it what the cluster would install, from the same index; for the
            proof on executors pyspark and Java have to be there. The Python and the machine have to be those
            that the bundle was built for: its native parts can't be loaded anywhere else.
        """,
        breaks="$ pip uninstall pyspark && gem-bundle verify dist/clicks-0.1.0+g0123456789ab",
        keeps="$ pip install 'gem-bundle[spark]' && gem-bundle verify dist/clicks-0.1.0+g0123456789ab",
    ),
    warning(
        "GB668",
        "a module can be imported only where a session is",
        why="""
            PySpark asks the session to read a type that is written as text, as in `udf("string")`. At the top
            of a module that happens when it is imported. On the driver a pipeline's modules are imported when
            the session is there; in the Python workers of executors there is none. A UDF itself gets there
            without its module, but a function of the module that it calls is found by importing it.
        """,
        breaks="""
            transforms:
              loud: {gem: python, input: ticks, options: {function: "jobs:loud"}}

            # jobs.py
            from pyspark.sql.functions import udf

            @udf("string")
            def shout(value):
                return f"{value}!"

            def loud(ticks):
                return ticks.withColumn("loud", shout("value"))

            $ gem-bundle verify dist/clicks-0.1.0+g0123456789ab
        """,
        keeps="""
            transforms:
              loud: {gem: python, input: ticks, options: {function: "jobs:loud"}}

            # jobs.py
            from pyspark.sql.functions import udf
            from pyspark.sql.types import StringType

            @udf(StringType())
            def shout(value):
                return f"{value}!"

            def loud(ticks):
                return ticks.withColumn("loud", shout("value"))

            $ gem-bundle verify dist/clicks-0.1.0+g0123456789ab
        """,
    ),
    error(
        "GB669",
        "spark-submit and a Spark Connect server are both to run the bundle",
        why="""
            `submit.sh` and `spark-submit` start a Spark, with the bundle's jars and its archive of
            dependencies; `SPARK_REMOTE`, or the option `--remote`, names a server that has a Spark. Only one
            of them can run the pipeline, so nothing is started. On the server the bundle runs by its
            `main.py` and Python alone: it brings its modules along, and the server has to have its jars.
        """,
        breaks="$ SPARK_REMOTE=sc://spark.example.com ./submit.sh -- -p topic=clicks",
        keeps="$ SPARK_REMOTE=sc://spark.example.com python main.py -p topic=clicks",
    ),
)
