"""GB210 to GB218: expressions, and the names of columns."""

from __future__ import annotations

from gem_bundle.codes.code import error, warning

EXPRESSIONS = (
    error(
        "GB210",
        "unknown column",
        why="""
            Neither the input has a column of that name, nor a struct in it a field, nor did the same
            node make one before. Spark compares names without case; a name with other characters than
            letters, digits and underscores needs backquotes in an expression. Behind a join a column
            can be called by its input's name too: `orders.id`.

            It is only said where all columns of the input are known, from a declared schema or because
            a source always has the same.
        """,
        breaks="""
            transforms:
              even: {gem: filter, input: ticks, options: {condition: valeu % 2 = 0}}
        """,
        keeps="""
            transforms:
              even: {gem: filter, input: ticks, options: {condition: value % 2 = 0}}
        """,
    ),
    error(
        "GB211",
        "several columns have the name",
        why="""
            Two inputs of a join both have a column of that name, and Spark doesn't choose one of them.
            Write the input's name before it, there and in the node right behind the join; or choose and
            rename columns in a `select` first. A join with `on` has the columns it is on once only.
        """,
        breaks="""
            sources:
              orders: {gem: rate}
              payments: {gem: rate}
            transforms:
              paid:
                gem: join
                inputs: [orders, payments]
                options: {condition: orders.value = payments.value and timestamp is not null}
            targets:
              screen: {gem: console, input: paid}
        """,
        keeps="""
            sources:
              orders: {gem: rate}
              payments: {gem: rate}
            transforms:
              ordered:
                gem: watermark
                input: orders
                options: {column: timestamp, delay: 1 minute}
              settled:
                gem: watermark
                input: payments
                options: {column: timestamp, delay: 1 minute}
              paid:
                gem: join
                inputs: {orders: ordered, payments: settled}
                options:
                  condition: orders.value = payments.value and orders.timestamp = payments.timestamp
            targets:
              screen: {gem: console, input: paid}
        """,
    ),
    error(
        "GB212",
        "a function can't stand there",
        why="""
            Aggregate functions (`sum`, `count`, …) are of many rows: they belong into an `aggregate`, and
            nowhere else unless they have an `over (…)`. In an aggregation a column that isn't grouped by can
            only stand within one, since it has many values in each group. Window functions
            (`… over (…)`) and functions that make several rows of one (`explode`, …) belong into a
            `select` or `with_columns`, and not into conditions, groups or sort keys.
            Where a row has to be judged alike whenever it comes, no function can stand that depends on the
            time, on chance or on where it is computed.
        """,
        breaks="""
            transforms:
              largest: {gem: filter, input: ticks, options: {condition: value = max(value)}}
        """,
        keeps="""
            transforms:
              largest:
                gem: aggregate
                input: ticks
                options: {aggregates: {largest: max(value)}}
            targets:
              screen: {gem: console, input: largest, output_mode: update}
        """,
    ),
    error(
        "GB213",
        "an expression has the wrong type",
        why="""
            A condition must be a boolean, a window needs a time to be over, a sum needs numbers. Spark
            converts some types by itself, a text into a number for example; where it doesn't, write
            what is meant: a comparison, a `cast(… as …)`, `to_timestamp(…)`. What puts rows in order must
            have a type with an order, which maps haven't, and differ from row to row.
        """,
        breaks="""
            transforms:
              odd: {gem: filter, input: ticks, options: {condition: value % 2}}
        """,
        keeps="""
            transforms:
              odd: {gem: filter, input: ticks, options: {condition: value % 2 = 1}}
        """,
        source="Spark SQL reference, ANSI compliance, type promotion and precedence",
    ),
    error(
        "GB214",
        "an expression can't be read",
        why="""
            What stands there is no Spark SQL expression: an operator lacks what it is applied to, two
            operators or three names stand side by side, a bracket or a quote isn't closed, or a cast is to
            a type that doesn't exist. It is said of whole queries too.
        """,
        breaks="""
            transforms:
              even: {gem: filter, input: ticks, options: {condition: value % = 0}}
        """,
        keeps="""
            transforms:
              even: {gem: filter, input: ticks, options: {condition: value % 2 = 0}}
        """,
    ),
    error(
        "GB215",
        "a function has the wrong number of arguments",
        why="""
            Each of Spark's functions takes so many arguments and no others. `gem-bundle` knows the
            functions of Spark 4.2; what a session defines itself may take anything.
        """,
        breaks="""
            transforms:
              hours: {gem: with_columns, input: ticks, options: {columns: {hour: date_trunc(timestamp)}}}
        """,
        keeps="""
            transforms:
              hours:
                gem: with_columns
                input: ticks
                options: {columns: {hour: "date_trunc('hour', timestamp)"}}
        """,
        source="Spark SQL reference, built-in functions",
    ),
    warning(
        "GB216",
        "a function that Spark doesn't have",
        why="""
            None of Spark's own functions is called so, and one of them nearly is. It is a warning, since a
            session or a catalog can have functions of its own under any name.
        """,
        breaks="""
            transforms:
              days:
                gem: with_columns
                input: ticks
                options: {columns: {day: "dateformat(timestamp, 'yyyy-MM-dd')"}}
        """,
        keeps="""
            transforms:
              days:
                gem: with_columns
                input: ticks
                options: {columns: {day: "date_format(timestamp, 'yyyy-MM-dd')"}}
        """,
        source="Spark SQL reference, built-in functions",
    ),
    warning(
        "GB217",
        "a rule can end the query",
        why="""
            A row for which a rule can't be evaluated breaks the rule. Most of what ends a query in Spark is
            made null for that: casts, divisions by zero, sums that overflow, elements that aren't there,
            texts compared with numbers. For some functions Spark has no such form. One row then ends the
            query, and every run after it, which is what rules are there to prevent.
        """,
        breaks="""
            transforms:
              late:
                gem: expect
                input: ticks
                options: {rules: {old: "make_date(int(value), 1, 1) > '2020-01-01'"}}
              bad: {gem: select, input: late.rejected, options: {columns: [row]}}
            targets:
              good: {gem: console, input: late}
              screen: {gem: console, input: bad}
        """,
        keeps="""
            transforms:
              late:
                gem: expect
                input: ticks
                options: {rules: {old: "try_make_timestamp(int(value), 1, 1, 0, 0, 0) > '2020-01-01'"}}
              bad: {gem: select, input: late.rejected, options: {columns: [row]}}
            targets:
              good: {gem: console, input: late}
              screen: {gem: console, input: bad}
        """,
        source="Spark SQL reference, ANSI compliance",
    ),
    error(
        "GB218",
        "rows are told apart by a value that isn't the same in each query",
        why="""
            Where two outputs of a node are taken, each is computed by itself: by a query of its own, for each
            target of a group behind the fork, and again when a micro-batch is repeated. What decides has to
            come to the same each time, or a row is in both outputs, or in none. A column that a node makes by
            chance (`rand`, `uuid`), of the current time, or of where Spark computes it doesn't. A column of a
            source does.
        """,
        breaks="""
            transforms:
              drawn: {gem: with_columns, input: ticks, options: {columns: {r: rand()}}}
              half: {gem: expect, input: drawn, options: {rules: {drawn: r > 0.5}}}
            targets:
              good: {gem: console, input: half}
              bad: {gem: console, input: half.rejected}
        """,
        keeps="""
            transforms:
              drawn: {gem: with_columns, input: ticks, options: {columns: {r: xxhash64(value) % 100}}}
              half: {gem: expect, input: drawn, options: {rules: {drawn: r > 50}}}
            targets:
              good: {gem: console, input: half}
              bad: {gem: console, input: half.rejected}
        """,
    ),
    warning(
        "GB219",
        "a name that no column has and Spark takes for who runs the query",
        why="""
            `user` is a function of Spark's that is called without brackets, like `current_date`. Where a
            column of the name has gone, or was never there, no column is missing to Spark: each row gets the
            name of who runs the query. `current_user()` says so to a reader too.
        """,
        breaks="""
            transforms:
              named: {gem: with_columns, input: ticks, options: {columns: {who: "upper(user)"}}}
        """,
        keeps="""
            transforms:
              named: {gem: with_columns, input: ticks, options: {columns: {who: "upper(current_user())"}}}
        """,
        source="Spark SQL reference, built-in functions",
    ),
)
