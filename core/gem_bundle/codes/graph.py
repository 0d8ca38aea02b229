"""GB1xx: the graph of nodes."""

from __future__ import annotations

from gem_bundle.codes.code import error, note, warning

GRAPH = (
    error(
        "GB101",
        "unknown input",
        why="""
            An input names a source or a transform of the same file by its id. A target has no output,
            so nothing can read from one.
        """,
        breaks="""
            transforms:
              even:
                gem: filter
                input: tikcs
                options: {condition: value % 2 = 0}
            targets:
              screen: {gem: console, input: even}
        """,
        keeps="""
            transforms:
              even:
                gem: filter
                input: ticks
                options: {condition: value % 2 = 0}
            targets:
              screen: {gem: console, input: even}
        """,
    ),
    error(
        "GB102",
        "the graph has a cycle",
        why="""
            Each of these nodes needs the rows of another one of them, so none can begin. Spark has no
            loops in a query either. To feed results back, write them to a table or a topic and read
            that as a source.
        """,
        breaks="""
            transforms:
              both: {gem: union, inputs: [ticks, late]}
              late: {gem: filter, input: both, options: {condition: value > 100}}
            targets:
              screen: {gem: console, input: both}
        """,
        keeps="""
            transforms:
              late: {gem: filter, input: ticks, options: {condition: value > 100}}
              both: {gem: union, inputs: {all: ticks, again: late}}
            targets:
              screen: {gem: console, input: both}
        """,
        source="Guide, Basic Concepts: a query is a tree of operations over its sources",
    ),
    warning(
        "GB103",
        "a node is not used by any target",
        why="""
            Only what a target needs is read and computed. A node that leads nowhere costs nothing, but
            it is most often a forgotten input or a rest of an earlier edit.
        """,
        breaks="""
            transforms:
              even: {gem: filter, input: ticks, options: {condition: value % 2 = 0}}
            targets:
              screen: {gem: console, input: ticks}
        """,
        keeps="""
            transforms:
              even: {gem: filter, input: ticks, options: {condition: value % 2 = 0}}
            targets:
              screen: {gem: console, input: even}
        """,
    ),
    error(
        "GB104",
        "an id is used twice",
        why="""
            Ids are unique over sources, transforms and targets, because inputs, checkpoints and
            command lines name nodes by them alone. Likewise the inputs of one node need different
            names, because its expressions refer to them: where one node is used twice, name both.
        """,
        breaks="""
            transforms:
              pairs:
                gem: join
                inputs: [ticks, ticks]
                options: {condition: ticks.value = ticks.value + 1}
        """,
        keeps="""
            transforms:
              pairs:
                gem: join
                inputs: {now: ticks, before: ticks}
                options: {condition: now.value = before.value + 1}
        """,
    ),
    error(
        "GB105",
        "a node has too few or too many inputs",
        why="""
            Each transform says how many inputs it takes: a filter takes one, a join two, a union two
            or more. `gem-bundle describe` shows it.
        """,
        breaks="""
            sources:
              ticks: {gem: rate}
              tocks: {gem: rate}
            transforms:
              even:
                gem: filter
                inputs: [ticks, tocks]
                options: {condition: value % 2 = 0}
        """,
        keeps="""
            sources:
              ticks: {gem: rate}
              tocks: {gem: rate}
            transforms:
              both: {gem: union, inputs: [ticks, tocks]}
              even: {gem: filter, input: both, options: {condition: value % 2 = 0}}
        """,
    ),
    error(
        "GB106",
        "unknown output of a node",
        why="""
            A transform with several outputs names them, and an input takes one: `node.output`. All
            other nodes have one output without a name; beside it some have `rejected`, for rows that
            they can't use, where their options ask for it.
        """,
        breaks="""
            transforms:
              sorted:
                gem: python
                input: ticks
                options: {function: "jobs:split", outputs: [good, bad]}
            targets:
              screen: {gem: console, input: sorted}
        """,
        keeps="""
            transforms:
              sorted:
                gem: python
                input: ticks
                options: {function: "jobs:split", outputs: [good, bad]}
            targets:
              screen: {gem: console, input: sorted.good}
        """,
    ),
    error(
        "GB107",
        "the pipeline has no target",
        why="""
            Rows flow only because a target asks for them: without one there is nothing to run. For a
            first look, write to `console`.
        """,
        breaks="""
            sources:
              ticks: {gem: rate}
            targets:
        """,
        keeps="""
            sources:
              ticks: {gem: rate}
            targets:
              screen: {gem: console, input: ticks}
        """,
        source="Guide, Starting Streaming Queries: a query begins with its sink",
    ),
    error(
        "GB108",
        "unknown node",
        why="""
            The command names a node that the file doesn't have. `preview` takes the id of any node,
            `run --target` the id of a target.
        """,
        breaks="$ gem-bundle preview clicks.yaml tikcs",
        keeps="$ gem-bundle preview clicks.yaml ticks",
    ),
    warning(
        "GB109",
        "rejected rows go nowhere",
        why="""
            A node that rejects rows leaves them out of its ordinary output, and has them in its output
            `rejected`, with the reasons. Where no other node takes that, they are gone, and nobody
            learns which they were. Where they are to be dropped, say so to the gem, or silence this.
        """,
        breaks="""
            transforms:
              plausible:
                gem: expect
                input: ticks
                options: {rules: {even: value % 2 = 0}}
            targets:
              screen: {gem: console, input: plausible}
        """,
        keeps="""
            transforms:
              plausible:
                gem: expect
                input: ticks
                options: {rules: {even: value % 2 = 0}}
            targets:
              screen: {gem: console, input: plausible}
              others: {gem: console, input: plausible.rejected}
        """,
    ),
    note(
        "GB110",
        "rejected rows don't tell where they came from",
        why="""
            The `origin` of a rejected row has the topic, the partition and the offset, or the version of
            the table, as long as the row still has the columns of its source that tell it. A node that
            reads fields out of a message leaves them out, unless it is told to keep what else there is.
            Then nobody finds the record again, and `gem-bundle replay` can't tell equal rows apart.
        """,
        breaks="""
            sources:
              messages:
                gem: kafka
                options:
                  bootstrap_servers: ["localhost:9092"]
                  subscribe: clicks
                  starting_offsets: earliest
            transforms:
              parsed:
                gem: from_json
                input: messages
                options: {column: value, schema: "page string, amount double"}
              plausible:
                gem: expect
                input: parsed
                options: {rules: {paid: amount > 0}}
            targets:
              screen: {gem: console, input: plausible}
              others: {gem: console, input: plausible.rejected}
        """,
        keeps="""
            sources:
              messages:
                gem: kafka
                options:
                  bootstrap_servers: ["localhost:9092"]
                  subscribe: clicks
                  starting_offsets: earliest
            transforms:
              parsed:
                gem: from_json
                input: messages
                options: {column: value, schema: "page string, amount double", keep: true}
              plausible:
                gem: expect
                input: parsed
                options: {rules: {paid: amount > 0}}
            targets:
              screen: {gem: console, input: plausible}
              others: {gem: console, input: plausible.rejected}
        """,
    ),
)
