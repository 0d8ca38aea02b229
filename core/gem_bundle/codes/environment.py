"""GB5xx: what a run needs from its environment."""

from __future__ import annotations

from gem_bundle.codes.code import error, note, warning

ENVIRONMENT = (
    error(
        "GB501",
        "no usable Java",
        why="""
            Spark runs on Java 17 or newer. It is looked for in `JAVA_HOME`, then on the PATH; the
            message tells what was found there. Checking a pipeline needs no Java.
        """,
        breaks="$ JAVA_HOME=/usr/lib/jvm/java-8 gem-bundle run clicks.yaml",
        keeps="$ JAVA_HOME=/usr/lib/jvm/java-17 gem-bundle run clicks.yaml",
        source="Spark 4: Java 17 and 21",
    ),
    error(
        "GB502",
        "jars can't be resolved",
        why="""
            Kafka, Delta and Avro are jars that Spark doesn't bring along. The first run fetches them
            from Maven repositories and keeps them, later ones need no network. `gem-bundle jars` shows
            what a pipeline needs and where each comes from, and fetches it beforehand.

            Where a repository lacks a version, name another one or another repository in
            gem-bundle.toml, under [jars]. What Spark needs for an object store is no gem's: name it there
            as one of the `packages`.

            A session that somebody else started (a Spark Connect server, a notebook, `spark-submit`) has the
            jars that it was started with. It is asked before anything starts whether it has those that the
            gems need, and has to be started with them where it hasn't.
        """,
        breaks="""
            # gem-bundle.toml
            [jars]
            overrides = {"io.delta:delta-spark_4.2_2.13" = "0.0.1"}
        """,
        keeps="""
            # gem-bundle.toml
            [jars]
            overrides = {"io.delta:delta-spark_4.2_2.13" = "4.4.0"}
            repositories = ["https://maven.example.com/releases"]
        """,
    ),
    error(
        "GB503",
        "a system can't be reached",
        why="""
            A broker, a server or a catalog doesn't answer at the address that the pipeline names, or it
            refuses the login. `gem-bundle check --connect` tries all of them without running anything,
            and so does every run before its queries start. Temporary credentials of an object store end while
            a stream goes on: it ends then, and one that is started with new ones continues.
        """,
        breaks="$ gem-bundle check --connect clicks.yaml -p brokers=localhost:9093",
        keeps="$ gem-bundle check --connect clicks.yaml -p brokers=localhost:9092",
    ),
    error(
        "GB504",
        "a topic doesn't exist",
        why="""
            The Kafka cluster has no topic of that name, or the topic lacks a partition that the
            pipeline names. Without this check Spark would wait, or, where the broker creates topics by
            itself, read an empty one for ever.
        """,
        breaks="$ gem-bundle check --connect clicks.yaml -p topic=clikcs",
        keeps="$ gem-bundle check --connect clicks.yaml -p topic=clicks",
    ),
    error(
        "GB505",
        "a path doesn't exist",
        why="""
            There is nothing at the path that the pipeline reads. Relative paths are relative to the
            pipeline file, and not to the folder that the command is run in.
        """,
        breaks="$ gem-bundle run jobs/clicks.yaml -p path=jobs/data",
        keeps="$ gem-bundle run jobs/clicks.yaml -p path=data",
    ),
    error(
        "GB506",
        "a Python function doesn't exist",
        why="""
            `function: module:name` is a name in a module that lies beside the pipeline file or belongs
            to an installed package. It is imported when the pipeline runs, or when `check --engine`
            builds it. A plain check imports nothing: it reads the source of a module that isn't an
            installed package's, and warns when there is no such module here.
        """,
        breaks="""
            transforms:
              clean: {gem: python, input: ticks, options: {function: "jobs:claen"}}

            # jobs.py
            def clean(ticks):
                return ticks.where("value > 0")
        """,
        keeps="""
            transforms:
              clean: {gem: python, input: ticks, options: {function: "jobs:clean"}}

            # jobs.py
            def clean(ticks):
                return ticks.where("value > 0")
        """,
    ),
    error(
        "GB507",
        "Python code of the pipeline raised an error",
        why="""
            A function that the pipeline names raised an error, takes other arguments than it is given,
            or returned something else than it should. The message has the error and its line. In a
            streaming pipeline the micro-batch isn't committed: mend the function and run again, and no
            row is lost.
        """,
        breaks="""
            # jobs.py
            def clean(ticks):
                ticks.where("value > 0")
        """,
        keeps="""
            # jobs.py
            def clean(ticks):
                return ticks.where("value > 0")
        """,
    ),
    error(
        "GB508",
        "a query failed",
        why="""
            A streaming query, or a batch write, ended with an error of Spark. The message says which
            node it belongs to and what Spark's reason is; `--debug` shows all of it. The other
            queries of the run are stopped, and the next run continues from the checkpoints.
        """,
        breaks="""
            spark:
              spark.sql.ansi.enabled: true
            transforms:
              shares: {gem: select, input: ticks, options: {columns: [100 / value as share]}}

            $ gem-bundle run clicks.yaml
        """,
        keeps="""
            spark:
              spark.sql.ansi.enabled: true
            transforms:
              shares: {gem: select, input: ticks, options: {columns: ["try_divide(100, value) as share"]}}

            $ gem-bundle run clicks.yaml
        """,
    ),
    error(
        "GB509",
        "pyspark is missing, or too old for what the pipeline uses",
        why="""
            Checking needs no Spark, so gem-bundle doesn't install one: a cluster brings its own. To run
            pipelines on this machine, install the extra `spark`; preflights of Kafka need the extra
            `kafka`, and to talk to a Spark Connect server pyspark needs what the extra `connect-client`
            brings. Some options exist from a later Spark on only, which the message then says.
        """,
        breaks="$ pip install gem-bundle && gem-bundle run clicks.yaml",
        keeps="$ pip install 'gem-bundle[spark]' && gem-bundle run clicks.yaml",
    ),
    error(
        "GB510",
        "a table doesn't exist",
        why="""
            The catalog of the session has no table of that name. A name without a schema is looked up
            in the current one, `default`. Targets create tables where they know the columns.
        """,
        breaks="$ gem-bundle run clicks.yaml -p table=pages",
        keeps="$ gem-bundle run clicks.yaml -p table=web.pages",
    ),
    error(
        "GB511",
        "a file can't be written",
        why="""
            The place for a report, for Spark's log or for the rows of a target doesn't exist, may not be
            written to by this user, or already holds something that must not be replaced.
        """,
        breaks="$ gem-bundle run clicks.yaml --report reports/today.json",
        keeps="""
            $ mkdir reports
            $ gem-bundle run clicks.yaml --report reports/today.json
        """,
    ),
    error(
        "GB512",
        "the Spark session can't start",
        why="""
            Java is there, but Spark doesn't come up: a setting it can't read, too little memory, a
            master that doesn't answer. `gem-bundle run --show-settings` lists what the session is
            started with, and where each setting comes from.
        """,
        breaks="""
            spark:
              spark.driver.memory: 4 gigabytes

            $ gem-bundle run clicks.yaml
        """,
        keeps="""
            spark:
              spark.driver.memory: 4g

            $ gem-bundle run clicks.yaml
        """,
    ),
    warning(
        "GB513",
        "the session that runs has a setting otherwise",
        why="""
            Where a session runs already (a notebook, a Spark Connect server) a run sets what can still
            be set. Some settings are read once, when Spark starts: extensions, catalogs, memory. What the
            pipeline, its project or its gems want of those has to be given to that start.
        """,
        breaks="""
            $ SPARK_REMOTE=sc://spark.example.com gem-bundle run clicks.yaml
        """,
        keeps="""
            $ start-connect-server.sh --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension
            $ SPARK_REMOTE=sc://spark.example.com gem-bundle run clicks.yaml
        """,
        source="Guide, Spark Connect; Spark SQL, static configurations",
    ),
    warning(
        "GB514",
        "the server looks on another disk",
        why="""
            Queries run on the Spark Connect server, and a path without a scheme is one of its machine. Here
            it was asked for the pipeline file and hasn't got it, so checkpoints, files and tables on a
            disk are looked for, and made, on its own disk.
        """,
        breaks="""
            checkpoints: checkpoints

            $ SPARK_REMOTE=sc://spark.example.com gem-bundle run clicks.yaml
        """,
        keeps="""
            checkpoints: s3a://lake/checkpoints

            $ SPARK_REMOTE=sc://spark.example.com gem-bundle run clicks.yaml
        """,
    ),
    error(
        "GB515",
        "a row broke a rule that ends the query",
        why="""
            A rule of an `expect` with `action: fail` doesn't hold for a row. The message names the rule and
            shows the row, at most its first 2,000 characters. The micro-batch isn't committed, so the next
            run begins with the same rows. Targets that write a micro-batch as a whole (Delta, files) have
            nothing of it; of others, such as topics, some rows of it may have gone out.
        """,
        breaks="""
            transforms:
              plausible:
                gem: expect
                input: ticks
                options: {action: fail, rules: {even: value % 2 = 0}}
        """,
        keeps="""
            transforms:
              plausible:
                gem: expect
                input: ticks
                options: {action: reject, rules: {even: value % 2 = 0}}
        """,
    ),
    warning(
        "GB516",
        "no record is kept of a run",
        why="""
            A run writes beside its checkpoints how it is, and looks there for what it is asked. Here that
            place can't be written: the package that teaches fsspec its scheme isn't installed, or its
            credentials are Spark's alone. The run goes on, but nobody sees it from outside, and it stops
            by signals only.
        """,
        breaks="""
            checkpoints: s3a://bucket/checkpoints

            $ pip uninstall s3fs
            $ gem-bundle run clicks.yaml
        """,
        keeps="""
            checkpoints: s3a://bucket/checkpoints

            $ pip install s3fs
            $ gem-bundle run clicks.yaml
        """,
    ),
    error(
        "GB517",
        "there is no run that could be meant",
        why="""
            Runs are known by the records that they keep beside their checkpoints. There is none of this
            pipeline, or none that is alive: it has ended, its process is gone, or it hasn't said anything
            for half a minute. Parameters and profile have to be those of the run where the place of the
            checkpoints depends on them.
        """,
        breaks="""
            $ gem-bundle stop clicks.yaml
        """,
        keeps="""
            $ gem-bundle run clicks.yaml &
            $ gem-bundle stop clicks.yaml
        """,
    ),
    error(
        "GB518",
        "a run can't have that server",
        why="""
            What a run answers over HTTP says where its data lies and how much of it there is, and with
            `--allow-control` a request can stop it. So a server that other machines reach wants a token in
            each request, which it gets from the variable `GEM_BUNDLE_SERVE_TOKEN`. A batch pipeline has no
            queries that it could show.
        """,
        breaks="$ gem-bundle run clicks.yaml --serve 0.0.0.0:8080",
        keeps="$ GEM_BUNDLE_SERVE_TOKEN=c0ffee gem-bundle run clicks.yaml --serve 0.0.0.0:8080",
    ),
    warning(
        "GB519",
        "a run goes on without its server",
        why="""
            Its port is taken, its address isn't one of this machine, or the server has failed meanwhile.
            No row depends on it, so the run goes on; `gem-bundle status` tells how it is.
        """,
        breaks="""
            $ gem-bundle run clicks.yaml --target table --serve 8080 &
            $ gem-bundle run clicks.yaml --target screen --serve 8080
        """,
        keeps="""
            $ gem-bundle run clicks.yaml --target table --serve 8080 &
            $ gem-bundle run clicks.yaml --target screen --serve 0
        """,
    ),
    error(
        "GB520",
        "a target was unwell, and the run was to stop then",
        why="""
            A limit under `health` was broken for as long as it says, and `on_unhealthy` is `stop`, or is
            `restart` and the query was started again as often as `restarts` allows. The other queries have
            ended their micro-batches and stopped; the next run continues there.
        """,
        breaks="""
            health: {batch_time: 1 second, on_unhealthy: stop}
        """,
        keeps="""
            health: {batch_time: 5 minutes, on_unhealthy: report}
        """,
    ),
    warning(
        "GB521",
        "an event of the run's lineage can't be sent",
        why="""
            With `--lineage` a run tells OpenLineage's receivers what it reads and writes. Here the receiver
            doesn't answer, or refuses the event. No row depends on it, so the run goes on, and the next
            events are tried too; this is said once.
        """,
        breaks="""
            $ gem-bundle run clicks.yaml --lineage http://localhost:1
        """,
        keeps="""
            $ gem-bundle run clicks.yaml --lineage lineage.jsonl
        """,
        source="OpenLineage, Python client",
    ),
    error(
        "GB522",
        "a schema registry doesn't have the schema",
        why="""
            There is no such subject, the schema isn't registered in it, or it can't become the next version
            there because the subject's rule of compatibility doesn't take it. A run registers a schema only
            where `register: true` says so.
        """,
        breaks="$ gem-bundle check --connect clicks.yaml -p subject=clikcs-value",
        keeps="$ gem-bundle check --connect clicks.yaml -p subject=clicks-value",
    ),
    note(
        "GB523",
        "a schema is taken from the registry when a run starts",
        why="""
            No schema stands in the pipeline, so the latest one of the subject at the start is used until the
            run ends. The next run may use another one, with other columns. Give the schema by `schema` or
            `schema_file` where that mustn't be.
        """,
        breaks="$ gem-bundle check --connect clicks.yaml -p topic=clicks",
        keeps="$ gem-bundle check --connect clicks.yaml -p schema=click.avsc",
    ),
    error(
        "GB524",
        "Spark's Java has ended before the run has",
        why="""
            Spark runs in a process of Java's beside Python's. Here that process is gone: the system or the
            container has killed it as memory ran out, a signal that was meant for the run went to it too, or
            Spark had no memory left in it. Nothing that wasn't committed counts, so the next run begins with
            the micro-batch that was under way, as after any crash. Queries aren't started again by this run,
            whatever `restarts` says: it has nothing to start them in.
        """,
        breaks="""
            # On a machine, or in a container, of 8 GB.
            spark: {spark.driver.memory: 16g}
        """,
        keeps="""
            spark: {spark.driver.memory: 5g}
        """,
    ),
    error(
        "GB525",
        "the Spark Connect server has gone away before the run has ended",
        why="""
            Queries run on the server that `SPARK_REMOTE` names. Here its port has refused connections for
            a while, or it hasn't answered for ten minutes, or another server answers there that doesn't know
            the session: it has ended, and its queries with it. Nothing that wasn't committed counts, so the
            next run begins with the micro-batch that was under way, as after any crash, on whatever server
            it is then. Queries aren't started again by this run, whatever `restarts` says: it has nothing to
            start them in.
        """,
        breaks="""
            $ start-connect-server.sh --conf spark.driver.memory=512m
            $ SPARK_REMOTE=sc://localhost gem-bundle run clicks.yaml
        """,
        keeps="""
            $ start-connect-server.sh --conf spark.driver.memory=4g
            $ SPARK_REMOTE=sc://localhost gem-bundle run clicks.yaml
        """,
        source="Guide, Spark Connect",
    ),
)
