"""GB62x and GB63x: what goes into a bundle, and whether it is still what was built."""

from __future__ import annotations

from gem_bundle.codes.code import error, warning

BUNDLE_CONTENTS = (
    error(
        "GB620",
        "a Python module of the pipeline is missing",
        why="""
            A bundle brings the modules that its pipelines name, and what those import from the project. They
            are looked for as a run looks for them: beside the pipeline file first, then among what is
            installed. The message has the module, and the line that needs it.
        """,
        breaks="""
            transforms:
              clean: {gem: python, input: ticks, options: {function: "jobs:clean"}}

            $ gem-bundle build clicks.yaml
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
        "GB621",
        "a path leads out of the project",
        why="""
            A bundle is made of one project, so that it can be made again from it. Pipeline files and modules
            that lie elsewhere, also by a link, can't be packed. On the cluster relative paths of data are
            relative to the folder that the job runs in (`--root`), and one that begins with `..` leads out
            of it.
        """,
        breaks="""
            targets:
              table: {gem: delta, input: ticks, options: {path: ../out/ticks}}

            $ gem-bundle build clicks.yaml
        """,
        keeps="""
            targets:
              table: {gem: delta, input: ticks, options: {path: out/ticks}}

            $ gem-bundle build clicks.yaml
        """,
    ),
    warning(
        "GB622",
        "a path of the building machine is in the pipeline file",
        why="""
            The path lies in the project's folder or in your home folder, and the cluster will look for it on
            its own machines. Write it relative to the pipeline file, as a URL, or make a parameter of it that
            the job is given at its start.
        """,
        breaks="""
            targets:
              table: {gem: delta, input: ticks, options: {path: /home/ann/clicks/out}}

            $ HOME=/home/ann gem-bundle build clicks.yaml
        """,
        keeps="""
            parameters:
              table: {type: string, default: out}
            targets:
              table: {gem: delta, input: ticks, options: {path: "${table}"}}

            $ HOME=/home/ann gem-bundle build clicks.yaml
        """,
    ),
    error(
        "GB623",
        "a package has no __init__.py",
        why="""
            Executors import the user's modules from the zip that spark-submit gives them, and Python finds no
            package in a zip without `__init__.py`, even though it does in a folder. So it would work on the
            machine that builds and fail on the cluster.
        """,
        breaks="""
            transforms:
              clean: {gem: python, input: ticks, options: {function: "jobs.rules:clean"}}

            $ mkdir jobs && mv rules.py jobs/
            $ gem-bundle build clicks.yaml
        """,
        keeps="""
            transforms:
              clean: {gem: python, input: ticks, options: {function: "rules:clean"}}

            # rules.py
            def clean(ticks):
                return ticks.where("value > 0")
        """,
    ),
    error(
        "GB624",
        "a module needs a distribution that the bundle doesn't bring",
        why="""
            The module imports something that is neither part of Python, nor of the project, nor of the
            distributions that the bundle brings, so it would fail on the cluster. An import that stands in a
            `try` with `except ImportError` may fail and isn't reported.
        """,
        breaks="""
            transforms:
              clean: {gem: python, input: ticks, options: {function: "jobs:clean"}}

            # jobs.py
            import holidays

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
        "GB625",
        "the pipeline's name can't be that of a wheel",
        why="""
            The wheel is called like the first pipeline, with `-` for `_`. Names of wheels begin and end with
            a letter or a digit, and the wheel must not be called like a distribution that it needs: pip would
            replace the one by the other.
        """,
        breaks="""
            pipeline: pyspark

            $ gem-bundle build clicks.yaml
        """,
        keeps="""
            pipeline: clicks

            $ gem-bundle build clicks.yaml
        """,
        source="PyPA, Names and normalization",
    ),
    error(
        "GB626",
        "the pipeline's version can't be that of a wheel",
        why="""
            A bundle's version is the pipeline's, then `+g` and the beginning of the hash of the contents. So
            the pipeline's must be one of PEP 440 and can't have a `+` itself.
        """,
        breaks="""
            pipeline: clicks
            version: 1.4-final-2

            $ gem-bundle build clicks.yaml
        """,
        keeps="""
            pipeline: clicks
            version: 1.4.2

            $ gem-bundle build clicks.yaml
        """,
        source="PEP 440",
    ),
    error(
        "GB627",
        "a module's name is taken",
        why="""
            On a cluster the user's modules are imported beside everything else. A module that is called like
            one of Python itself, of Spark, of gem-bundle or of a dependency is not found there, or is found
            instead of the other; and two modules of one name can't be in one bundle.
        """,
        breaks="""
            transforms:
              clean: {gem: python, input: ticks, options: {function: "statistics:clean"}}

            # statistics.py
            def clean(ticks):
                return ticks.where("value > 0")
        """,
        keeps="""
            transforms:
              clean: {gem: python, input: ticks, options: {function: "tick_statistics:clean"}}

            # tick_statistics.py
            def clean(ticks):
                return ticks.where("value > 0")
        """,
    ),
    error(
        "GB628",
        "two pipelines of a bundle have one name",
        why="""
            By its name a pipeline is started (`--pipeline NAME`), and its checkpoints are kept under it. Two
            of one name would go on from each other's checkpoints.
        """,
        breaks="$ gem-bundle build clicks.yaml old/clicks.yaml",
        keeps="$ gem-bundle build clicks.yaml",
    ),
    error(
        "GB629",
        "a secret is spelled out in the pipeline file",
        why="""
            The pipeline file goes into the bundle as it is, and everyone who gets the bundle could read the
            secret. Write a reference: it is looked up when the job starts, and is never in the bundle.
            Change the secret too, for it was in a file. Settings that are passed on as they are
            (`spark`, `spark_options`, a catalog's `settings`) are known by their names, such as
            `fs.s3a.secret.key`, and by a login in a URL.
        """,
        breaks="""
            sources:
              ticks:
                gem: kafka
                options:
                  bootstrap_servers: localhost:9092
                  subscribe: clicks
                  security_protocol: SSL
                  ssl_key_password: swordfish

            $ gem-bundle build clicks.yaml
        """,
        keeps="""
            sources:
              ticks:
                gem: kafka
                options:
                  bootstrap_servers: localhost:9092
                  subscribe: clicks
                  security_protocol: SSL
                  ssl_key_password: ${secret:kafka/key}

            $ gem-bundle build clicks.yaml
        """,
    ),
    error(
        "GB630",
        "the bundle is damaged",
        why="""
            A bundle's manifest has the hash of every file. A file is missing, or isn't what was built, or has
            come from elsewhere, or the manifest itself can't be read. All such files are listed. Build the
            bundle again, or copy it again from where it was built.
        """,
        breaks="""
            $ rm dist/clicks-0.1.0+g0123456789ab/main.py
            $ gem-bundle verify dist/clicks-0.1.0+g0123456789ab
        """,
        keeps="""
            $ gem-bundle build clicks.yaml
            $ gem-bundle verify dist/clicks-0.1.0+g0123456789ab
        """,
    ),
    error(
        "GB631",
        "the bundle has another format",
        why="""
            The bundle was built by a gem-bundle whose bundles look different from those that this one reads.
            An older bundle is built again from its project, with the same dependencies if the lock file is
            kept; for a newer one this gem-bundle has to be updated.
        """,
        breaks="""
            $ pip install 'gem-bundle==0.0.1'
            $ gem-bundle build clicks.yaml
            $ pip install --upgrade gem-bundle
            $ gem-bundle verify dist/clicks-0.1.0
        """,
        keeps="""
            $ pip install --upgrade gem-bundle
            $ gem-bundle build clicks.yaml
            $ gem-bundle verify dist/clicks-0.1.0+g0123456789ab
        """,
    ),
    error(
        "GB632",
        "the bundle isn't signed with the key",
        why="""
            `gem-bundle verify --key` takes only a bundle that the holder of the private key has signed. There
            is no signature, or it is by another key, or the manifest was changed after signing. Don't run
            such a bundle before you know why.
        """,
        breaks="""
            $ gem-bundle build clicks.yaml
            $ gem-bundle verify dist/clicks-0.1.0+g0123456789ab --key bundle.key.pub
        """,
        keeps="""
            $ gem-bundle build clicks.yaml --sign bundle.key
            $ gem-bundle verify dist/clicks-0.1.0+g0123456789ab --key bundle.key.pub
        """,
    ),
    error(
        "GB633",
        "the key for signing can't be used",
        why="""
            Bundles are signed with Ed25519 keys in PEM form: the private one signs, the public one verifies.
            The file isn't there, isn't such a key, is encrypted with another password, or the package
            `cryptography` isn't installed.
        """,
        breaks="$ gem-bundle build clicks.yaml --sign bundle.key.pub",
        keeps="$ gem-bundle build clicks.yaml --sign bundle.key",
        source="RFC 8032, RFC 8410",
    ),
    error(
        "GB634",
        "a file can't be packed",
        why="""
            The file can't be read, or a module isn't valid Python and would fail when it is imported. Native
            code can't be imported from a zip, which is how executors get the user's modules: it belongs into
            a distribution of its own, and then comes with the dependencies.
        """,
        breaks="""
            transforms:
              clean: {gem: python, input: ticks, options: {function: "jobs:clean"}}

            # jobs.py
            def clean(ticks)
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
    warning(
        "GB635",
        "a function is known at the start only",
        why="""
            The option names its function by a parameter without a default, or by an environment variable, so
            the build can't know which module to pack. The job fails at its start unless the function is in a
            module that is packed for another reason, or is installed on the cluster.
        """,
        breaks="""
            transforms:
              clean: {gem: python, input: ticks, options: {function: "${env:RULE}"}}

            $ RULE=jobs:clean gem-bundle build clicks.yaml
        """,
        keeps="""
            parameters:
              rule: jobs:clean
            transforms:
              clean: {gem: python, input: ticks, options: {function: "${rule}"}}

            # jobs.py
            def clean(ticks):
                return ticks.where("value > 0")
        """,
    ),
    error(
        "GB636",
        "the bundle can't be written",
        why="""
            A bundle is made beside where it will be, and moved there when it is whole. That folder isn't
            writable, is a file, or is full. Nothing half-written is left behind.
        """,
        breaks="""
            $ gem-bundle build clicks.yaml -o /usr/share
        """,
        keeps="""
            $ gem-bundle build clicks.yaml -o dist
        """,
    ),
    error(
        "GB637",
        "the project's dependencies can't be read",
        why="""
            What the project's own modules need stands in its pyproject.toml, in `dependencies` under
            [project], as PEP 508 has it. A bundle brings these along.
        """,
        breaks="""
            # pyproject.toml
            [project]
            name = "clicks"
            version = "1.0"
            dependencies = ["requests >>= 2"]

            $ gem-bundle build clicks.yaml
        """,
        keeps="""
            # pyproject.toml
            [project]
            name = "clicks"
            version = "1.0"
            dependencies = ["requests >= 2"]

            $ gem-bundle build clicks.yaml
        """,
        source="PEP 621; PEP 508",
    ),
    error(
        "GB638",
        "a server of a job that probes can't ask",
        why="""
            With `serve` the manifests for Kubernetes have probes: the kubelet asks the driver's pod at
            `/health` and `/ready`, from outside of it. So the server listens on an address that others reach,
            at a port that is known, and wants a token of those who ask for more; it gets that from the
            job's Secret, as `GEM_BUNDLE_SERVE_TOKEN`.
        """,
        breaks="""
            job:
              continuous: true
              root: s3a://streams/clicks
              serve: 127.0.0.1:8080
              cluster:
                image: "registry.example.com/clicks@${env:IMAGE_DIGEST}"
                secret: clicks

            $ gem-bundle build clicks.yaml --for kubernetes
        """,
        keeps="""
            job:
              continuous: true
              root: s3a://streams/clicks
              serve: 8080
              cluster:
                image: "registry.example.com/clicks@${env:IMAGE_DIGEST}"
                secret: clicks

            $ gem-bundle build clicks.yaml --for kubernetes
        """,
    ),
)
