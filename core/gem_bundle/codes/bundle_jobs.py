"""GB601 to GB619: what a platform can't do of a job, or would do wrong."""

from __future__ import annotations

from gem_bundle.codes.code import error, note, warning

BUNDLE_JOBS = (
    error(
        "GB601",
        "serverless compute only runs what ends by itself",
        why="""
            Databricks' serverless compute refuses streams that go on: of Structured Streaming's triggers
            it takes `available_now` (and `once`), and its jobs are not to be continuous. With a schedule
            such a job is nearly as fresh, and costs nothing in between.
        """,
        breaks="""
            job:
              schedule: "@hourly"
              root: /Volumes/main/streams/clicks
              cluster: {serverless: true}
            targets:
              table: {gem: delta, input: ticks, options: {path: out/ticks}}

            $ gem-bundle build clicks.yaml --for databricks
        """,
        keeps="""
            job:
              schedule: "@hourly"
              root: /Volumes/main/streams/clicks
              cluster: {serverless: true}
            targets:
              table:
                gem: delta
                input: ticks
                trigger: {available_now: true}
                options: {path: out/ticks}

            $ gem-bundle build clicks.yaml --for databricks
        """,
        source="Databricks: serverless compute limitations",
    ),
    error(
        "GB602",
        "serverless compute takes no jars",
        why="""
            A gem needs a jar that isn't part of Databricks, and on serverless compute a Python job can't
            bring one. Kafka, Delta and Avro are part of Databricks and are never shipped.
        """,
        breaks="""
            job:
              schedule: "@hourly"
              root: /Volumes/main/streams/clicks
              cluster: {serverless: true}

            $ gem-bundle build clicks.yaml --for databricks
        """,
        keeps="""
            job:
              schedule: "@hourly"
              root: /Volumes/main/streams/clicks
              cluster: {node_type: i3.xlarge, spark_version: 19.x-scala2.13}
            targets:
              table:
                gem: delta
                input: ticks
                trigger: {available_now: true}
                options: {path: out/ticks}

            $ gem-bundle build clicks.yaml --for databricks
        """,
        source="Databricks: serverless compute limitations",
    ),
    warning(
        "GB603",
        "a Spark setting that serverless compute may refuse",
        why="""
            A serverless session lets a job set a handful of Spark's settings, and refuses others when the
            job starts.
        """,
        breaks="""
            spark: {spark.executor.memory: 8g}
            job:
              schedule: "@hourly"
              root: /Volumes/main/streams/clicks
              cluster: {serverless: true}
            targets:
              table:
                gem: delta
                input: ticks
                trigger: {available_now: true}
                options: {path: out/ticks}

            $ gem-bundle build clicks.yaml --for databricks
        """,
        keeps="""
            spark: {spark.sql.session.timeZone: UTC}
            job:
              schedule: "@hourly"
              root: /Volumes/main/streams/clicks
              cluster: {serverless: true}
            targets:
              table:
                gem: delta
                input: ticks
                trigger: {available_now: true}
                options: {path: out/ticks}

            $ gem-bundle build clicks.yaml --for databricks
        """,
        source="Databricks: Spark properties on serverless compute",
    ),
    error(
        "GB604",
        "the Databricks runtime is older than Spark 4",
        why="""
            gem-bundle needs Spark 4: runtime 17 is Spark 4.0, 18 is 4.1, 19 is 4.2. The first serverless
            environment with Spark 4 has the version 4.
        """,
        breaks="""
            job:
              continuous: true
              root: /Volumes/main/streams/clicks
              cluster: {node_type: i3.xlarge, spark_version: 15.4.x-scala2.12}

            $ gem-bundle build clicks.yaml --for databricks
        """,
        keeps="""
            job:
              continuous: true
              root: /Volumes/main/streams/clicks
              cluster: {node_type: i3.xlarge, spark_version: 19.x-scala2.13}

            $ gem-bundle build clicks.yaml --for databricks
        """,
        source="Databricks: runtime release notes",
    ),
    error(
        "GB605",
        "a job on Databricks needs a cluster",
        why="""
            A Databricks job starts a cluster of its own, which needs the type of its nodes (or a policy,
            or a pool) and the version of the runtime. Without them the deployment fails.
        """,
        breaks="""
            job:
              continuous: true
              root: /Volumes/main/streams/clicks

            $ gem-bundle build clicks.yaml --for databricks
        """,
        keeps="""
            job:
              continuous: true
              root: /Volumes/main/streams/clicks
              cluster: {node_type: i3.xlarge, spark_version: 19.x-scala2.13}

            $ gem-bundle build clicks.yaml --for databricks
        """,
    ),
    error(
        "GB606",
        "checkpoints would be gone with the driver",
        why="""
            A relative path is relative to the folder that the driver runs in. On Databricks and on
            Kubernetes the driver's disk is gone when the run ends; the next run would find no checkpoint
            and read everything again, or skip what came in between.
        """,
        breaks="""
            job:
              continuous: true
              cluster: {node_type: i3.xlarge, spark_version: 19.x-scala2.13}

            $ gem-bundle build clicks.yaml --for databricks
        """,
        keeps="""
            job:
              continuous: true
              root: /Volumes/main/streams/clicks
              cluster: {node_type: i3.xlarge, spark_version: 19.x-scala2.13}

            $ gem-bundle build clicks.yaml --for databricks
        """,
    ),
    error(
        "GB607",
        "development and production would share their checkpoints",
        why="""
            A Databricks bundle has two targets, dev and prod. A stream that is tried out in dev and goes
            on with production's checkpoint takes rows away from production. Each target gets a folder of
            its own below `job.root`, if the pipeline's paths are relative.
        """,
        breaks="""
            checkpoints: s3://streams/clicks/checkpoints
            job:
              continuous: true
              cluster: {node_type: i3.xlarge, spark_version: 19.x-scala2.13}

            $ gem-bundle build clicks.yaml --for databricks
        """,
        keeps="""
            checkpoints: checkpoints
            job:
              continuous: true
              root: s3://streams/clicks
              cluster: {node_type: i3.xlarge, spark_version: 19.x-scala2.13}

            $ gem-bundle build clicks.yaml --for databricks
        """,
    ),
    error(
        "GB608",
        "a job's parameters are not the pipeline's",
        why="""
            A job starts by itself, so somebody must have given a value to every parameter that has no
            default: the job, or the profile that the bundle is built with. A name that is no parameter of
            the pipeline would be refused at every start.
        """,
        breaks="""
            parameters:
              rate: {type: integer}
            job:
              continuous: true
              root: /Volumes/main/streams/clicks
              parameters: {rates: 5}
              cluster: {node_type: i3.xlarge, spark_version: 19.x-scala2.13}
            sources:
              ticks: {gem: rate, options: {rows_per_second: "${rate}"}}

            $ gem-bundle build clicks.yaml --for databricks
        """,
        keeps="""
            parameters:
              rate: {type: integer}
            job:
              continuous: true
              root: /Volumes/main/streams/clicks
              parameters: {rate: 5}
              cluster: {node_type: i3.xlarge, spark_version: 19.x-scala2.13}
            sources:
              ticks: {gem: rate, options: {rows_per_second: "${rate}"}}

            $ gem-bundle build clicks.yaml --for databricks
        """,
    ),
    error(
        "GB609",
        "a schedule that Databricks can't express",
        why="""
            In a crontab, a day of the month and a day of the week mean that either is enough. Databricks
            uses Quartz, which takes one of the two.
        """,
        breaks="""
            job:
              schedule: "30 6 1 * MON"
              root: /Volumes/main/streams/clicks
              cluster: {node_type: i3.xlarge, spark_version: 19.x-scala2.13}

            $ gem-bundle build clicks.yaml --for databricks
        """,
        keeps="""
            job:
              schedule: "30 6 * * MON"
              root: /Volumes/main/streams/clicks
              cluster: {node_type: i3.xlarge, spark_version: 19.x-scala2.13}

            $ gem-bundle build clicks.yaml --for databricks
        """,
        source="Quartz: CronTrigger",
    ),
    note(
        "GB610",
        "something that the platform has nothing for",
        why="""
            The `job:` section is the same for all platforms. What one of them doesn't know (permissions
            outside Databricks, schedules with spark-submit) is left out of its job definition, and the
            hint says who has to see to it there.
        """,
        breaks="""
            job:
              timeout: 2 hours

            $ gem-bundle build clicks.yaml --for spark-submit
        """,
        keeps="""
            job:
              retries: 3

            $ gem-bundle build clicks.yaml --for spark-submit
        """,
    ),
    error(
        "GB611",
        "another version of Python on Databricks",
        why="""
            On Databricks the runtime decides which Python it is: 3.11 in runtime 15, 3.12 in 16 and 17 and
            in serverless environments 3 and 4. The job installs the wheels in the bundle, and those with
            native parts are for one version: another one refuses them. Where the job installs none of
            these it is a warning, since the bundle is tested with the Python it is built for.
        """,
        breaks="""
            job:
              continuous: true
              root: /Volumes/main/streams/clicks
              cluster: {node_type: i3.xlarge, spark_version: 17.3.x-scala2.13}

            $ gem-bundle build clicks.yaml --for databricks
        """,
        keeps="""
            job:
              continuous: true
              root: /Volumes/main/streams/clicks
              cluster: {node_type: i3.xlarge, spark_version: 17.3.x-scala2.13}

            $ gem-bundle build clicks.yaml --for databricks --python 3.12
        """,
        source="Databricks: runtime release notes",
    ),
    error(
        "GB612",
        "a cluster that the platform doesn't have",
        why="""
            Spark runs a Python driver on the cluster with YARN and on Kubernetes, not on a standalone
            cluster. And a cluster without workers is something that only Databricks has; elsewhere it is
            the master `local[*]`, or one worker.
        """,
        breaks="""
            job:
              cluster: {master: "spark://host:7077", deploy_mode: cluster}

            $ gem-bundle build clicks.yaml --for spark-submit
        """,
        keeps="""
            job:
              cluster: {master: "spark://host:7077", deploy_mode: client}

            $ gem-bundle build clicks.yaml --for spark-submit
        """,
        source="Spark: Submitting Applications",
    ),
    error(
        "GB613",
        "a job on Kubernetes needs an image",
        why="""
            Driver and executors are pods, and a pod runs an image. The bundle has a Dockerfile that makes
            one with everything in it; its name belongs into the `job:` section.
        """,
        breaks="""
            job:
              continuous: true
              root: s3a://streams/clicks

            $ gem-bundle build clicks.yaml --for kubernetes
        """,
        keeps="""
            job:
              continuous: true
              root: s3a://streams/clicks
              cluster:
                image: "registry.example.com/clicks:1.4.0"

            $ gem-bundle build clicks.yaml --for kubernetes
        """,
    ),
    error(
        "GB614",
        "secrets on Kubernetes are in a Secret",
        why="""
            A pipeline's secrets reach the driver as environment variables out of a Secret of Kubernetes,
            whose keys are the variables' names. The bundle knows the names only; no value is in it.
        """,
        breaks="""
            job:
              continuous: true
              root: s3a://streams/clicks
              cluster:
                image: "registry.example.com/clicks:1.4.0"
            targets:
              screen:
                gem: kafka
                input: texts
                options:
                  bootstrap_servers: [localhost:9092]
                  topic: clicks
                  sasl_mechanism: PLAIN
                  security_protocol: SASL_SSL
                  sasl_username: clicks
                  sasl_password: "${secret:kafka/password}"
            transforms:
              texts: {gem: select, input: ticks, options: {columns: {value: "cast(value as string)"}}}

            $ gem-bundle build clicks.yaml --for kubernetes
        """,
        keeps="""
            job:
              continuous: true
              root: s3a://streams/clicks
              cluster:
                image: "registry.example.com/clicks:1.4.0"
                secret: clicks
            targets:
              screen:
                gem: kafka
                input: texts
                options:
                  bootstrap_servers: [localhost:9092]
                  topic: clicks
                  sasl_mechanism: PLAIN
                  security_protocol: SASL_SSL
                  sasl_username: clicks
                  sasl_password: "${secret:kafka/password}"
            transforms:
              texts: {gem: select, input: ticks, options: {columns: {value: "cast(value as string)"}}}

            $ gem-bundle build clicks.yaml --for kubernetes
        """,
        source="Kubernetes: Secrets",
    ),
    error(
        "GB615",
        "a job's name doesn't fit Kubernetes",
        why="""
            Pods are named after their application, with 63 characters at most, lower-case letters, digits
            and hyphens. The operators add to the name, most of all for jobs that are started by the
            clock.
        """,
        breaks="""
            job:
              name: Clicks per minute and page, for the newsroom's big screens on all floors
              continuous: true
              root: s3a://streams/clicks
              cluster: {image: "registry.example.com/clicks:1.4.0"}

            $ gem-bundle build clicks.yaml --for kubernetes
        """,
        keeps="""
            job:
              name: clicks-per-minute
              continuous: true
              root: s3a://streams/clicks
              cluster: {image: "registry.example.com/clicks:1.4.0"}

            $ gem-bundle build clicks.yaml --for kubernetes
        """,
        source="Kubernetes: Object Names and IDs",
    ),
    warning(
        "GB616",
        "when a job starts doesn't fit when its runs end",
        why="""
            `continuous` starts the next run when one ends: with a trigger that ends, that is a cluster
            that does nothing but start. A `schedule` starts a run that must end before the next time:
            with a trigger that doesn't end, all later times are skipped.
        """,
        breaks="""
            job:
              continuous: true
              root: s3a://streams/clicks
              cluster: {image: "registry.example.com/clicks:1.4.0"}
            targets:
              table:
                gem: delta
                input: ticks
                trigger: {available_now: true}
                options: {path: out/ticks}

            $ gem-bundle build clicks.yaml --for kubernetes
        """,
        keeps="""
            job:
              schedule: "*/15 * * * *"
              root: s3a://streams/clicks
              cluster: {image: "registry.example.com/clicks:1.4.0"}
            targets:
              table:
                gem: delta
                input: ticks
                trigger: {available_now: true}
                options: {path: out/ticks}

            $ gem-bundle build clicks.yaml --for kubernetes
        """,
    ),
    error(
        "GB617",
        "the package index hasn't got what a job installs",
        why="""
            With `libraries: index`, and with a thin bundle, a job on Databricks installs what the bundle
            needs from a package index. The one that pip asks here has to have it: a version that exists on
            the machine that builds only, such as an editable installation's, is nowhere to be had.
        """,
        breaks="""
            job:
              continuous: true
              root: /Volumes/main/streams/clicks
              cluster: {node_type: i3.xlarge, spark_version: 19.x-scala2.13}
              libraries: index

            $ pip install --editable ./acme-gems
            $ gem-bundle build clicks.yaml --for databricks
        """,
        keeps="""
            job:
              continuous: true
              root: /Volumes/main/streams/clicks
              cluster: {node_type: i3.xlarge, spark_version: 19.x-scala2.13}

            $ pip install --editable ./acme-gems
            $ gem-bundle build clicks.yaml --for databricks
        """,
    ),
    error(
        "GB618",
        "a value that the platform doesn't take",
        why="""
            Every job definition is compared with what its tool takes before it is written: the tools
            themselves ignore what they don't know, or say so at deployment. A tag, for example, is a label
            on Kubernetes, which has letters, digits, hyphens, underscores and dots only.
        """,
        breaks="""
            job:
              continuous: true
              root: s3a://streams/clicks
              tags: {team: web & apps}
              cluster: {image: "registry.example.com/clicks:1.4.0"}

            $ gem-bundle build clicks.yaml --for kubernetes
        """,
        keeps="""
            job:
              continuous: true
              root: s3a://streams/clicks
              tags: {team: web-apps}
              cluster: {image: "registry.example.com/clicks:1.4.0"}

            $ gem-bundle build clicks.yaml --for kubernetes
        """,
    ),
    warning(
        "GB619",
        "an image that is not named by its digest",
        why="""
            What a tag means can change. A driver or an executor that is started again would then run
            other code on the same checkpoint. A digest names one image for ever.

            The image is made from the bundle, so its digest is known after the first build: take it from
            a variable, set it (`IMAGE_DIGEST=sha256:` and 64 digits), and build again. Neither the wheel
            nor the dependencies change by that.
        """,
        breaks="""
            job:
              continuous: true
              root: s3a://streams/clicks
              cluster: {image: "registry.example.com/clicks:1.4.0"}

            $ gem-bundle build clicks.yaml --for kubernetes
        """,
        keeps="""
            job:
              continuous: true
              root: s3a://streams/clicks
              cluster: {image: "registry.example.com/clicks@${env:IMAGE_DIGEST}"}

            $ gem-bundle build clicks.yaml --for kubernetes
        """,
        source="OCI Image Specification: digests",
    ),
)
