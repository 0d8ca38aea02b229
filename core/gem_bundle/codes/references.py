"""GB010 to GB019: parameters, references, names and settings."""

from __future__ import annotations

from gem_bundle.codes.code import error

REFERENCES = (
    error(
        "GB010",
        "unknown parameter",
        why="""
            `${name}` refers to a parameter of the pipeline, and `-p name=value` and profiles give
            parameters their values. A name that isn't declared under `parameters` would be a value
            that nobody uses, or a gap that nobody fills.
        """,
        breaks="""
            parameters: {speed: 10}
            sources:
              ticks:
                gem: rate
                options: {rows_per_second: "${sped}"}
        """,
        keeps="""
            parameters: {speed: 10}
            sources:
              ticks:
                gem: rate
                options: {rows_per_second: "${speed}"}
        """,
    ),
    error(
        "GB011",
        "a parameter has no value",
        why="""
            A parameter that is declared by its type only must be given by whoever runs or checks the
            pipeline: on the command line or in the profile that is used. Give it a default if there is
            a value that is right for most.
        """,
        breaks="""
            parameters:
              speed: {type: integer, description: Rows a second.}
            sources:
              ticks: {gem: rate, options: {rows_per_second: "${speed}"}}

            $ gem-bundle check clicks.yaml
        """,
        keeps="""
            parameters:
              speed: {type: integer, description: Rows a second.}
            sources:
              ticks: {gem: rate, options: {rows_per_second: "${speed}"}}

            $ gem-bundle check clicks.yaml -p speed=10
        """,
    ),
    error(
        "GB012",
        "a parameter's value has the wrong type",
        why="""
            The default gives a parameter its type: a number, a text, a list. Values from the command
            line and from the environment are read as that type, values in the file must be of it. So a
            wrong value is found here, and not in the options of five nodes.
        """,
        breaks="""
            parameters: {speed: 10}
            sources:
              ticks: {gem: rate, options: {rows_per_second: "${speed}"}}

            $ gem-bundle check clicks.yaml -p speed=fast
        """,
        keeps="""
            parameters: {speed: 10}
            sources:
              ticks: {gem: rate, options: {rows_per_second: "${speed}"}}

            $ gem-bundle check clicks.yaml -p speed=1000
        """,
    ),
    error(
        "GB013",
        "unknown profile",
        why="""
            A profile is a set of parameters' values under `profiles` in the file. Without the one you
            name, the pipeline would run with the defaults, perhaps against the wrong system.
        """,
        breaks="""
            parameters: {speed: 10}
            profiles:
              production: {speed: 1000}

            $ gem-bundle check clicks.yaml --profile prod
        """,
        keeps="""
            parameters: {speed: 10}
            profiles:
              production: {speed: 1000}

            $ gem-bundle check clicks.yaml --profile production
        """,
    ),
    error(
        "GB014",
        "an environment variable is not set",
        why="""
            `${env:NAME}` takes a value from the environment of the process that reads the file. An
            unset variable isn't taken for an empty text: that would only fail later and less clearly.
            Where a check runs without the environment of the run, `--skip-env` leaves the gaps open.
        """,
        breaks="""
            sources:
              ticks: {gem: rate, options: {rows_per_second: "${env:SPEED}"}}

            $ gem-bundle check clicks.yaml
        """,
        keeps="""
            sources:
              ticks: {gem: rate, options: {rows_per_second: "${env:SPEED}"}}

            $ SPEED=10 gem-bundle check clicks.yaml
        """,
    ),
    error(
        "GB015",
        "a secret can't be found",
        why="""
            `${secret:scope/key}` is looked up when a pipeline runs, in this order: the environment
            variable `GEM_BUNDLE_SECRET_<SCOPE>_<KEY>`, the file `<scope>/<key>` in the folder that
            `GEM_BUNDLE_SECRETS_DIR` names, the Databricks secret scope. The hint tells every place
            that was looked at.

            A check leaves a stand-in, so it needs no secrets. Values are never printed or logged.
        """,
        breaks="""
            sources:
              ticks:
                gem: kafka
                options:
                  bootstrap_servers: [localhost:9092]
                  subscribe: [clicks]
                  security_protocol: SASL_SSL
                  sasl_mechanism: PLAIN
                  sasl_username: reader
                  sasl_password: ${secret:kafka/password}

            $ gem-bundle run clicks.yaml
        """,
        keeps="""
            sources:
              ticks:
                gem: kafka
                options:
                  bootstrap_servers: [localhost:9092]
                  subscribe: [clicks]
                  security_protocol: SASL_SSL
                  sasl_mechanism: PLAIN
                  sasl_username: reader
                  sasl_password: ${secret:kafka/password}

            $ GEM_BUNDLE_SECRET_KAFKA_PASSWORD=… gem-bundle run clicks.yaml
        """,
    ),
    error(
        "GB016",
        "a reference can't be read",
        why="""
            `${name}` is a parameter, `${env:NAME}` an environment variable, `${secret:scope/key}` a
            secret, and nothing else can stand between `${` and `}`. Write `$${` for a literal `${`.

            The values of parameters may refer to the environment and to secrets, but not to each
            other. Lists and mappings can't be put into the middle of a text, and secrets stand only in
            options, Spark settings and parameters: other values are shown, in messages and names.
        """,
        breaks="""
            parameters: {name: ticks}
            transforms:
              named:
                gem: with_columns
                input: ticks
                options:
                  columns: {file: "'${upper(name)}'", template: "'Hello, ${your name}'"}
        """,
        keeps="""
            parameters: {name: ticks}
            transforms:
              named:
                gem: with_columns
                input: ticks
                options:
                  columns: {file: "upper('${name}')", template: "'Hello, $${your name}'"}
        """,
    ),
    error(
        "GB017",
        "a name or id has characters that can't be used",
        why="""
            Names and ids become folders of checkpoints, names of queries and of Spark's sources, views
            of SQL: what all of these take is letters, digits and single underscores. The name of a
            pipeline is in lower case, because some file systems don't tell cases apart.
        """,
        breaks="""
            pipeline: Clicks-per-minute
            sources:
              click stream: {gem: rate}
            targets:
              screen: {gem: console, input: click stream}
        """,
        keeps="""
            pipeline: clicks_per_minute
            sources:
              click_stream: {gem: rate}
            targets:
              screen: {gem: console, input: click_stream}
        """,
        source="Spark 4.2 takes [A-Za-z0-9_]+ as the name of a streaming source",
    ),
    error(
        "GB018",
        "the project's settings are wrong",
        why="""
            Settings stand in gem-bundle.toml, or in [tool.gem-bundle] of pyproject.toml, in the
            pipeline's folder or above it, and hold for every pipeline there: versions and repositories
            of jars, diagnostics that are not wanted, Spark settings. A setting that isn't understood
            would silently have no effect.
        """,
        breaks="""
            # gem-bundle.toml
            [check]
            disable = "GB103"
        """,
        keeps="""
            # gem-bundle.toml
            [check]
            disable = ["GB103"]
        """,
    ),
)
