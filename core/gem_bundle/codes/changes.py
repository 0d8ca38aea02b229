"""GB4xx: checkpoints, and pipelines that change."""

from __future__ import annotations

from textwrap import dedent

from gem_bundle.codes.code import error, note, warning


def _edit(before: str, after: str) -> str:
    """An edit: the pipeline file before it and behind it, and the command that compares them."""
    one, other = (dedent(text).strip("\n") for text in (before, after))
    return (
        f"# before.yaml\n{one}\n# clicks.yaml\n{other}\n$ gem-bundle plan clicks.yaml --against before.yaml"
    )


_SCHEMA = "page string, user int, at timestamp"
_MORE = f"""  more:
    gem: file
    mode: stream
    options: {{format: json, path: more, schema: "{_SCHEMA}"}}
"""


def _source(options: str = "", name: str = "clicks", more: str = "mode: stream") -> str:
    return dedent(f"""
        sources:
          {name}:
            gem: file
            {more}
            options: {{format: json, path: data{options}, schema: "{_SCHEMA}"}}
        """).lstrip("\n")


def _rest(transforms: str = "", target: str = "{gem: console, input: clicks}") -> str:
    middle = f"transforms:\n{transforms}" if transforms else ""
    return f"{middle}targets:\n  screen: {target}\n"


def _by(step: str, name: str = "step", target: str = "") -> str:
    return _source() + _rest(f"  {name}: {step}\n", target or f"{{gem: console, input: {name}}}")


def _joined(inputs: str) -> str:
    step = f"  pairs: {{gem: join, inputs: [{inputs}], options: {{on: [page]}}}}\n"
    return _rest(step, "{gem: console, input: pairs}")


def _table(columns: str, options: str = "") -> str:
    target = f"{{gem: delta, input: step, options: {{path: table{options}}}}}"
    return _by(f"{{gem: select, input: clicks, options: {{columns: {columns}}}}}", target=target)


def _csv(columns: str) -> str:
    target = "{gem: file, input: step, options: {format: csv, path: out}}"
    return _by(f"{{gem: select, input: clicks, options: {{columns: {columns}}}}}", target=target)


_FILTER = "{{gem: filter, input: clicks, options: {{condition: {}}}}}".format
_COUNT = "{{gem: aggregate, input: clicks,\n    options: {{group_by: [page], aggregates: {{n: {}}}}}}}".format
_UPDATE = "{gem: console, input: step, output_mode: update}"
_PLAIN = _source() + _rest()
_ONCE = "{{gem: deduplicate, input: clicks, options: {{columns: {}}}}}".format
_TABLE = "{gem: delta, input: step, options: {path: table}}"
_TO_TABLE = _source() + _rest(target="{gem: delta, input: clicks, options: {path: table}}")
_BACKFILL = "\n$ gem-bundle backfill clicks.yaml --target screen --from 2026-01-01 --to 2026-01-02"

CHANGES = (
    error(
        "GB401",
        "the checkpoint is in use by another run",
        why="""
            Two runs on one checkpoint overwrite each other's progress, and rows are lost or doubled. A
            run therefore holds a lock on the checkpoints of its targets; the message says who has it.
            Where there are no locks, as in an object store, a start looks whether the record that a run keeps
            beside its checkpoints is being renewed.
            Targets that are run by themselves (`--target`) have locks of their own.
        """,
        breaks="""
            $ gem-bundle run clicks.yaml &
            $ gem-bundle run clicks.yaml
        """,
        keeps="""
            $ gem-bundle run clicks.yaml --target table &
            $ gem-bundle run clicks.yaml --target screen
        """,
        source="Guide, Recovering from Failures with Checkpointing: one query, one checkpoint",
    ),
    error(
        "GB402",
        "the checkpoint is damaged",
        why="""
            A file of the checkpoint is missing, empty or cut off, so it can't be said up to where the
            sources were read. Restore the folder from a copy. Moving it away starts anew: sources are
            then read from their beginning, and a target gets rows that it already has.
        """,
        breaks="""
            $ rm checkpoints/clicks/table/metadata
            $ gem-bundle run clicks.yaml
        """,
        keeps="""
            $ mv checkpoints/clicks/table checkpoints/clicks/table.damaged
            $ gem-bundle run clicks.yaml
        """,
        source="Guide, Recovering from Failures with Checkpointing",
    ),
    error(
        "GB403",
        "the checkpoint was not made by this kind of run",
        why="""
            Runs name their sources in the checkpoint, so that sources can be added, removed and
            reordered later (Spark 4.2 calls it source evolution). Spark can't add the names to a
            checkpoint that was made without them, by another program or an older Spark: begin a new
            one, or go on without names.
        """,
        breaks="""
            checkpoints: made/by/another/program

            $ gem-bundle run clicks.yaml
        """,
        keeps="""
            checkpoints: made/by/another/program
            spark:
              spark.sql.streaming.queryEvolution.enableSourceEvolution: false
              spark.sql.streaming.offsetLog.formatVersion: 1

            $ gem-bundle run clicks.yaml
        """,
        source="Spark 4.2, spark.sql.streaming.queryEvolution.enableSourceEvolution",
    ),
    error(
        "GB404",
        "the record of a checkpoint can't be read",
        why="""
            Beside each checkpoint lies a record of what ran on it, `.<target>.record.json`, which every
            run and every plan compares the pipeline with. This one is damaged, a later gem-bundle wrote
            it, or it belongs to somebody else. Without it only what Spark left can be known.
        """,
        breaks="""
            $ mv notes.txt checkpoints/clicks/.table.record.json
            $ gem-bundle run clicks.yaml
        """,
        keeps="""
            $ rm checkpoints/clicks/.table.record.json
            $ gem-bundle run clicks.yaml
        """,
    ),
    warning(
        "GB405",
        "no record is kept of what runs on a checkpoint",
        why="""
            The checkpoint lies where this machine can't read or write files: the package that teaches
            fsspec its scheme isn't installed, its credentials are Spark's alone, or it lies on the
            machine of a Spark Connect server. The run goes on, without having been compared with what ran
            before. And a later version of the pipeline can be compared only with what Spark left there, if
            that can be seen.
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
        "GB406",
        "a checkpoint can't be seen from here",
        why="""
            It lies in a store that nothing here can read, or on the machine of a Spark Connect server,
            so nothing can be told of it: not how far it has got, and not what an edit does to it. A run
            leaves that to Spark (GB405). But where reading has failed this time only (the store is busy,
            credentials have expired, or it could be read a moment ago), the run stops before its first
            micro-batch: it might go on from a version by which rows are lost or mixed. Start it again.
        """,
        breaks="""
            checkpoints: s3a://bucket/checkpoints

            $ pip uninstall s3fs
            $ gem-bundle plan clicks.yaml
        """,
        keeps="""
            checkpoints: s3a://bucket/checkpoints

            $ pip install s3fs
            $ gem-bundle plan clicks.yaml
        """,
    ),
    error(
        "GB407",
        "a target can't begin with new state where it ended",
        why="""
            `run --fresh` makes a checkpoint with new state that goes on with the offsets of the old one.
            That takes an old checkpoint on a disk, with names for its sources (Spark 4.2), a trigger
            that makes micro-batches, sources that can be read from an offset and are still the same
            ones, and no stateful processor. What of it is missing stands in the message.
        """,
        breaks="""
            $ mv checkpoints/clicks/table old
            $ gem-bundle run clicks.yaml --fresh table
        """,
        keeps="""
            $ gem-bundle run clicks.yaml --available-now
            $ gem-bundle run clicks.yaml --fresh table
        """,
    ),
    warning(
        "GB408",
        "an `--accept` takes nothing",
        why="""
            `run --accept GB423:slow` takes a change of the node `slow` that would stop the run. Where no
            node is called so, now or in a version that has run, no change is taken by it: most likely
            the id is misspelt. The run goes on, for what would stop it stops it still. What is no code of a
            change at all is an error: on the command line wrong use, and from `Pipeline.run(accept=…)` this.
        """,
        breaks="$ gem-bundle run clicks.yaml --accept GB423:scren",
        keeps="$ gem-bundle run clicks.yaml --accept GB423:screen",
    ),
    error(
        "GB409",
        "a plan isn't made, since an option depends on a secret",
        why="""
            A plan looks no secrets up. Where an option is a text, another one stands in for it; where it
            is a number, a duration or one of some words, nothing can, so that the gem isn't known, and
            what an edit does isn't either.
        """,
        breaks="""
            sources:
              ticks:
                gem: file
                options: {format: json, path: data, schema: page string,
                  max_files_per_trigger: "${secret:ticks/most}"}

            $ gem-bundle plan clicks.yaml
        """,
        keeps="""
            parameters:
              most: 10
            sources:
              ticks:
                gem: file
                options: {format: json, path: data, schema: page string,
                  max_files_per_trigger: "${most}"}

            $ gem-bundle plan clicks.yaml
        """,
    ),
    error(
        "GB410",
        "a source is new",
        why="""
            The checkpoint knows nothing of it, so it is read from where its options say. From its
            beginning, all rows are right. One that begins at the newest skips what is there
            already: those rows are never read. A checkpoint without names for its sources takes none
            more: Spark refuses.
        """,
        breaks=_edit(
            _PLAIN,
            _source()
            + _MORE
            + _rest("  all: {gem: union, inputs: [clicks, more]}\n", "{gem: console, input: all}"),
        ),
        keeps=_edit(_PLAIN, _PLAIN),
        source="Guide, Recovery Semantics after Changes in a Streaming Query",
    ),
    error(
        "GB411",
        "a source is no more",
        why="""
            What waits in it since the last run is never read. Run the old version once more until
            nothing waits, then accept the change. With a checkpoint without names for its sources
            Spark refuses.
        """,
        breaks=_edit(
            _source()
            + _MORE
            + _rest("  all: {gem: union, inputs: [clicks, more]}\n", "{gem: console, input: all}"),
            _PLAIN,
        ),
        keeps=_edit(_PLAIN, _PLAIN),
        source="Guide, Recovery Semantics after Changes in a Streaming Query",
    ),
    error(
        "GB412",
        "a source has another id",
        why="""
            A checkpoint finds a source again by its id. Under another one it is a new source that
            is read from its beginning, so rows that were processed come once more; where it begins at
            the newest, what has come since the last run is never read. `was` says that it is the same
            one.
        """,
        breaks=_edit(_PLAIN, _source(name="visits") + _rest(target="{gem: console, input: visits}")),
        keeps=_edit(
            _PLAIN,
            _source(name="visits", more="was: clicks") + _rest(target="{gem: console, input: visits}"),
        ),
        source="Spark 4.2, spark.sql.streaming.queryEvolution.enableSourceEvolution",
    ),
    error(
        "GB413",
        "a source has another gem",
        why="""
            The offsets in the checkpoint are those of the old kind of source, and Spark can't
            read them as another kind's. Under another id it is a new source, and the old one is
            no more.
        """,
        breaks=_edit(_PLAIN, "sources:\n  clicks: {gem: rate}\n" + _rest()),
        keeps=_edit(_PLAIN, _PLAIN),
        source="Guide, Recovery Semantics after Changes in a Streaming Query",
    ),
    error(
        "GB414",
        "a source reads another place",
        why="""
            The offsets in the checkpoint are those of the old place. What becomes of rows depends
            on the source: a folder's files are known by their whole paths, a topic's records by
            partition, a Delta table by its id. A server is a part of the place, and another one may be
            another name of the same.
        """,
        breaks=_edit(_PLAIN, _PLAIN.replace("path: data", "path: elsewhere")),
        keeps=_edit(_PLAIN, _PLAIN),
        source="Guide, Recovery Semantics after Changes in a Streaming Query",
    ),
    warning(
        "GB415",
        "a source has other options",
        why="""
            What an option means for rows, its gem says: how much a micro-batch takes makes no
            difference, where a first run begins is ignored on an old checkpoint, and another
            schema is a new rule for rows from now on.
        """,
        breaks=_edit(_PLAIN, _PLAIN.replace("user int", "user bigint")),
        keeps=_edit(_PLAIN, _PLAIN),
        source="Guide, Recovery Semantics after Changes in a Streaming Query",
    ),
    error(
        "GB416",
        "the project has moved with its checkpoints",
        why="""
            The checkpoint of a source of files keeps the whole paths of those that were read.
            From another folder Spark fails in the first micro-batch, and by a path with wildcards it
            reads all of them again. Of a Delta table it keeps an id, which the table takes along. A
            table that is written to, or read whole by each micro-batch, goes on where it came along.
        """,
        breaks="""
            $ mv shop /srv/shop
            $ gem-bundle plan /srv/shop/clicks.yaml
        """,
        keeps="""
            $ gem-bundle plan clicks.yaml
        """,
    ),
    error(
        "GB417",
        "a source is read in another way",
        why="""
            A stream gives each row once, a static relation all of its rows to each micro-batch.
            Results that were made of the one don't go with those of the other. A stream that begins at the
            newest never has the rows that were there.
        """,
        breaks=_edit(
            _source() + _MORE.replace("stream", "batch") + _joined("clicks, more"),
            _source() + _MORE + _joined("clicks, more"),
        ),
        keeps=_edit(_PLAIN, _PLAIN),
    ),
    error(
        "GB418",
        "a source reaches the target on other paths",
        why="""
            A source that reaches one target on two paths has a reader for each, with offsets of
            its own. Its name comes from the node where the paths meet and from that input. A path
            that is new is read from the beginning; of a source that begins at the newest, what has come
            since the last run is never read there.
        """,
        breaks=_edit(
            _PLAIN,
            _source()
            + _rest(
                "  twice: {gem: union, inputs: {first: clicks, second: clicks}}\n",
                "{gem: console, input: twice}",
            ),
        ),
        keeps=_edit(_PLAIN, _PLAIN),
    ),
    warning(
        "GB420",
        "a transform is new, or another one",
        why="""
            Rows from now on go by it. Where state lies behind it, that was made without it and
            gets into new results.
        """,
        breaks=_edit(_PLAIN, _by(_FILTER("user > 0"))),
        keeps=_edit(_PLAIN, _PLAIN),
        source="Guide, Recovery Semantics after Changes in a Streaming Query",
    ),
    warning(
        "GB421",
        "a transform is no more",
        why="""
            Rows from now on go without it. Where state lies behind it, that was made with it and
            gets into new results. It may stand in the file for other targets yet: it is no
            longer before the one that the plan names.
        """,
        breaks=_edit(_by(_FILTER("user > 0")), _PLAIN),
        keeps=_edit(_PLAIN, _PLAIN),
        source="Guide, Recovery Semantics after Changes in a Streaming Query",
    ),
    error(
        "GB422",
        "the state in the checkpoint is another one",
        why="""
            Spark keeps state by operator, in their order, with the types of keys and values. It
            refuses to start when an operator is new, gone or of another kind, or when a type is
            another one.
        """,
        breaks=_edit(
            _by(_COUNT("count(*)"), target=_UPDATE),
            _by(_COUNT("avg(user)"), target=_UPDATE),
        ),
        keeps=_edit(_by(_COUNT("count(*)"), target=_UPDATE), _by(_COUNT("count(*)"), target=_UPDATE)),
        source="Guide, Recovery Semantics after Changes in a Streaming Query",
    ),
    error(
        "GB423",
        "a transform has other options",
        why="""
            Rows from now on go by the new rule, and earlier results stay as they were. Where
            state was made by the old rule, in the node itself or behind it, it gets into new
            results: sums of both, groups that are there twice. Spark tells what it keeps of one
            type apart by its order alone: aggregates that change places, or the columns of a
            `select` right behind them, come out for each other.
        """,
        breaks=_edit(
            _by(_COUNT("max(user)"), target=_UPDATE),
            _by(_COUNT("min(user)"), target=_UPDATE),
        ),
        keeps=_edit(
            _by(_COUNT("max(user)"), target=_UPDATE),
            _by(_COUNT("max(user)"), target=_UPDATE),
        ),
        source="Guide, Recovery Semantics after Changes in a Streaming Query",
    ),
    warning(
        "GB424",
        "the code of a function has changed",
        why="""
            The pipeline calls a Python function, and its code, or that of its module that it
            uses, isn't the one that ran last. Comments and formatting don't count. What the
            function does with rows can't be told.
        """,
        breaks="""
            sources:
              clicks: {gem: rate}
            transforms:
              clean: {gem: python, input: clicks, options: {function: "jobs:clean"}}
            targets:
              screen: {gem: console, input: clean}

            $ gem-bundle plan clicks.yaml
        """,
        keeps="""
            $ gem-bundle plan clicks.yaml
        """,
        source="Guide, Recovery Semantics after Changes in a Streaming Query",
    ),
    warning(
        "GB425",
        "a node reads something else",
        why="""
            Its rows come from another node, or its inputs stand in another order, or the columns
            of one of them do, of which it takes all as they stand. Rows from now on go by it;
            what state was made of is something else.
        """,
        breaks=_edit(
            _source() + _MORE + _joined("clicks, more"),
            _source() + _MORE + _joined("more, clicks"),
        ),
        keeps=_edit(_PLAIN, _PLAIN),
        source="Guide, Recovery Semantics after Changes in a Streaming Query",
    ),
    warning(
        "GB426",
        "a watermark is another one",
        why="""
            A watermark matters to what keeps state behind it. From now on it goes by the new
            delay; what was dropped as late, or let go, is gone, and the watermark in the
            checkpoint never goes back. On another column the old one goes on counting.
        """,
        breaks=_edit(
            _source()
            + _rest(
                "  timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}\n"
                "  once: {gem: deduplicate, input: timely, options: {columns: [page, at]}}\n",
                "{gem: console, input: once}",
            ),
            _source()
            + _rest(
                "  timely: {gem: watermark, input: clicks, options: {column: at, delay: 2 hours}}\n"
                "  once: {gem: deduplicate, input: timely, options: {columns: [page, at]}}\n",
                "{gem: console, input: once}",
            ),
        ),
        keeps=_edit(_PLAIN, _PLAIN),
        source="Guide, Handling Late Data and Watermarking",
    ),
    warning(
        "GB430",
        "a target has another gem",
        why="""
            Rows from now on go to the new kind of place; what was written stays where it is. Whether
            a place can begin in the middle, its gem says: a folder of files has a log that Spark
            can't read then, and a table of files fails in the first micro-batch. Of a gem that says
            nothing and has a sink of its own, the worse is assumed.
        """,
        breaks=_edit(_PLAIN, _source() + _rest(target="{gem: noop, input: clicks}")),
        keeps=_edit(_PLAIN, _PLAIN),
        source="Guide, Recovery Semantics after Changes in a Streaming Query",
    ),
    error(
        "GB431",
        "a target writes to another place",
        why="""
            Rows from now on go there; earlier ones stay where they are. A folder of files has a
            log of its own that begins in the middle then, so Spark can't read what is written
            there, and fails where the folder is that of a table.
        """,
        breaks=_edit(
            _source() + _rest(target="{gem: file, input: clicks, options: {format: json, path: out}}"),
            _source() + _rest(target="{gem: file, input: clicks, options: {format: json, path: elsewhere}}"),
        ),
        keeps=_edit(_PLAIN, _PLAIN),
        source="Guide, Recovery Semantics after Changes in a Streaming Query",
    ),
    warning(
        "GB432",
        "a target has other options",
        why="""
            What an option means for rows, its gem says. One folder of files, or one table, has
            one format and one way to be partitioned.
        """,
        breaks=_edit(
            _source() + _rest(target="{gem: file, input: clicks, options: {format: json, path: out}}"),
            _source() + _rest(target="{gem: file, input: clicks, options: {format: csv, path: out}}"),
        ),
        keeps=_edit(_PLAIN, _PLAIN),
        source="Guide, Recovery Semantics after Changes in a Streaming Query",
    ),
    error(
        "GB433",
        "the output mode is another one",
        why="""
            Without state it makes no difference. With it, `append` drops a result from the state
            when it is final, and the others don't: what was written comes again, or makes a
            second result. What keeps state of such results, as `deduplicate` behind groups does, has
            that of the old ones.
        """,
        breaks=_edit(
            _by(_COUNT("count(*)"), target="{gem: console, input: step, output_mode: update}"),
            _by(_COUNT("count(*)"), target="{gem: console, input: step, output_mode: complete}"),
        ),
        keeps=_edit(_PLAIN, _PLAIN),
        source="Guide, Output Modes",
    ),
    warning(
        "GB434",
        "the trigger is another one",
        why="""
            When micro-batches run makes no difference to rows, and real-time processing goes on
            from them as they go on from it. Continuous processing keeps a checkpoint in another
            way, and Spark doesn't go from one to the other.
        """,
        breaks=_edit(
            _PLAIN,
            _source() + _rest(target="{gem: console, input: clicks, trigger: {processing_time: 1 minute}}"),
        ),
        keeps=_edit(_PLAIN, _PLAIN),
        source="Guide, Triggers",
    ),
    error(
        "GB435",
        "a new checkpoint begins where there are rows already",
        why="""
            Without a checkpoint all that the sources have is read, from their beginning, or nothing of it
            where they begin at the newest. Where the target has rows already, they come once more; into a
            folder of files they are never written, since its log takes micro-batches for known by their
            number. So it is when a checkpoint was moved or removed, when the pipeline was given another name
            or another place for its checkpoints, or when a target was given another id. Records beside the
            checkpoints tell which target wrote there before, whatever it is called now. A batch run goes by
            no checkpoint at all, and a stream begins with a new one where batch runs have written. A table
            that somebody else has filled is meant to be added to: then accept it.
        """,
        breaks="""
            $ gem-bundle run clicks.yaml
            $ rm -r checkpoints
            $ gem-bundle plan clicks.yaml
        """,
        keeps="""
            $ gem-bundle run clicks.yaml
            $ gem-bundle plan clicks.yaml
        """,
        source="Guide, Recovering from Failures with Checkpointing; File Sink",
    ),
    error(
        "GB436",
        "the target's place doesn't take the columns that come now",
        why="""
            A Delta table has the columns that it was filled with. Rows with another one are refused until
            the target is told to add columns, and a column doesn't change to a type of another kind.
            Columns that come no more are null from now on.
        """,
        breaks=_edit(_table("[page, user]"), _table("[page, user, at]")),
        keeps=_edit(_table("[page, user]"), _table("[page, user, at]", ", merge_schema: true")),
        source="Delta, Schema enforcement",
    ),
    warning(
        "GB437",
        "the target's place mistakes one column for another",
        why="""
            Spark reads files of CSV by the places of their columns, and goes by the header of one
            file if by any. Where a column stands elsewhere than in the files that are there, values
            of one are read as those of another. New columns behind the others are harmless.
            Files of Parquet, ORC and Avro have the types of their columns in them, and a folder of
            both types isn't read as one table: Spark fails, or has no values for some rows.
        """,
        breaks=_edit(_csv("[page, user]"), _csv("[user, page]")),
        keeps=_edit(_csv("[page, user]"), _csv("[page, user, at]")),
    ),
    note(
        "GB440",
        "a frozen setting is another one",
        why="""
            Some of Spark's settings belong to a checkpoint from its first run on: how many
            partitions a shuffle has, the state store, the policy of several watermarks. A later
            value has no effect on it.
        """,
        breaks=_edit(_PLAIN, "spark: {spark.sql.shuffle.partitions: 8}\n" + _PLAIN),
        keeps=_edit(_PLAIN, _PLAIN),
        source="Guide, Recovery Semantics after Changes in a Streaming Query",
    ),
    note(
        "GB441",
        "Spark has another version",
        why="""
            A later Spark reads the checkpoints of an earlier one. An earlier one may not know
            what a later one has written: 4.2 names the sources, and those before can't read that. Of
            others it isn't known; a Spark that can't read a checkpoint fails at the start.
        """,
        breaks="""
            $ pip install "pyspark==4.1.1"
            $ gem-bundle plan clicks.yaml
        """,
        keeps="""
            $ gem-bundle plan clicks.yaml
        """,
    ),
    note(
        "GB442",
        "a gem has another version",
        why="""
            The distribution that a gem comes from isn't the one that ran last. What its options
            mean is judged by the one that is installed; whether its code does the same as before,
            its changelog says.
        """,
        breaks="""
            $ pip install --upgrade acme-gems
            $ gem-bundle plan clicks.yaml
        """,
        keeps="""
            $ gem-bundle plan clicks.yaml
        """,
    ),
    note(
        "GB443",
        "a node has another id",
        why="""
            `was` names its former id, so that its checkpoint, its offsets and its state stay its
            own: a rename is no change. Only the rows that a node rejects have its id, in the
            column `node`: where that is read, it is another one from now on. A target of a group goes on
            with the checkpoint of the group without it too, but for a micro-batch that isn't done: what it
            has of that it may get once more.
        """,
        breaks=_edit(
            _PLAIN,
            _source(name="visits", more="was: clicks") + _rest(target="{gem: console, input: visits}"),
        ),
        keeps=_edit(_PLAIN, _PLAIN),
    ),
    note(
        "GB444",
        "a target has no checkpoint yet",
        why="""
            A first run reads each source from where its options say. A target that was given
            another id has none either: then `was` names its former one.
        """,
        breaks=_edit(_PLAIN, _PLAIN.replace("screen:", "other:")),
        keeps=_edit(_PLAIN, _PLAIN),
    ),
    note(
        "GB445",
        "a target is no more",
        why="""
            Nothing is written to it any more, or by what goes by no checkpoint, as batch runs do. Its
            checkpoint stays where it is, so it can come back later. Its record tells of it: where the
            checkpoint was removed, remove that too.
        """,
        breaks=_edit(_PLAIN + "  other: {gem: noop, input: clicks}\n", _PLAIN),
        keeps=_edit(_PLAIN, _PLAIN),
    ),
    note(
        "GB446",
        "nothing tells what ran on the checkpoint",
        why="""
            It was made before gem-bundle kept a record beside it, or by another program. What
            Spark itself left is compared: the names of sources, the kinds of operators with
            state, the types of their keys and what aggregates keep, the settings. Rules of
            filters and of columns can't be. The next run keeps a record.
        """,
        breaks="""
            checkpoints: made/by/another/program

            $ gem-bundle plan clicks.yaml
        """,
        keeps="""
            $ gem-bundle run clicks.yaml
            $ gem-bundle plan clicks.yaml
        """,
    ),
    error(
        "GB447",
        "a target has another query than before",
        why="""
            The targets of a group share a query and its checkpoint. One that joins a group which has run gets
            what comes from now on; what was read before goes past it. One that goes into a new group, or
            out of one, has a new checkpoint, and what its sources have is written once more, or never read
            where they begin at the newest.
        """,
        breaks=_edit(
            _PLAIN + "  other: {gem: noop, input: clicks, group: all}\n",
            _PLAIN.replace("input: clicks}", "input: clicks, group: all}")
            + "  other: {gem: noop, input: clicks, group: all}\n",
        ),
        keeps=_edit(_PLAIN, _PLAIN),
    ),
    error(
        "GB448",
        "a setting decides otherwise on rows",
        why="""
            By the session's time zone a day begins and a text becomes a time; other settings say what an
            overflow gives, how old files are read, or which names are one. No checkpoint keeps them, so that
            a run with another value goes by it at once: rows from now on are made by it, and state that was
            made by the old one gets into new results. Some say which rows come and when: whether files that
            can't be read are passed over, or whether a micro-batch without rows brings results whose time is
            over. They leave state as it is. Where no time zone is given it is the machine's own. A record
            knows that one where Spark and the checkpoint are on the machine, and of a server or a cluster it
            doesn't: give it.
        """,
        breaks=_edit(
            "spark: {spark.sql.session.timeZone: UTC}\n" + _by(_COUNT("count(*)"), target=_UPDATE),
            "spark: {spark.sql.session.timeZone: Asia/Tokyo}\n" + _by(_COUNT("count(*)"), target=_UPDATE),
        ),
        keeps=_edit(
            "spark: {spark.sql.session.timeZone: UTC}\n" + _by(_COUNT("count(*)"), target=_UPDATE),
            "spark: {spark.sql.session.timeZone: UTC}\n" + _by(_COUNT("count(*)"), target=_UPDATE),
        ),
    ),
    error(
        "GB450",
        "a target's rows can't be computed anew for a time",
        why="""
            `backfill` puts rows in the place of those of an interval, in one step that others see whole
            or not. The gem of the target can't do that, or its rows are written again and again
            (`update`, `complete`), or another target writes to the same place, whose rows would be
            gone. `--into` writes to a table of its own, which is in no place that the pipeline reads, writes
            or keeps checkpoints in.
        """,
        breaks="""
            targets:
              lines: {gem: file, input: ticks, options: {format: json, path: lines}}

            $ gem-bundle backfill clicks.yaml --target lines --from 2026-01-01 --to 2026-01-02
        """,
        keeps="""
            targets:
              lines: {gem: file, input: ticks, options: {format: json, path: lines}}

            $ gem-bundle backfill clicks.yaml --target lines --from 2026-01-01 --to 2026-01-02 --into t
        """,
    ),
    error(
        "GB451",
        "there is no column that an interval can be on",
        why="""
            An interval is on the column of the target's rows that has the event time, or on the one that
            `--column` names. It has to be a time or a date. Rows that are there have to have the time
            that they would get now: where an edit has changed how the column is made, a row may lie in
            the interval now and have lain outside of it, and would be there twice. What tells it is the
            record beside the checkpoint, which has to begin with micro-batch 0: older gem-bundles kept
            none, and of more than 50 versions only the last 50 are kept. The column of the sources that
            `--partition` names has to be a date.
        """,
        breaks=_TO_TABLE + _BACKFILL,
        keeps=_TO_TABLE + _BACKFILL + " --column at",
    ),
    error(
        "GB452",
        "rows depend on others outside of the interval",
        why="""
            Which rows come out for a time must not go by what lies outside of it, or by the order in
            which rows came: sessions that begin before the interval, the first of some duplicates, a
            row without a partner, the first rows of a limit. What is left to a batch nevertheless
            (`--into`, `--compare`) the message says.
        """,
        breaks=_by(_ONCE("[page]"), target=_TABLE) + _BACKFILL + " --column at",
        keeps=_by(_ONCE("[page, at]"), target=_TABLE) + _BACKFILL + " --column at",
    ),
    error(
        "GB453",
        "a source can't be read once more",
        why="""
            It keeps no rows, or some that the live run has read are no longer there, and what was made of
            them would be gone; where its options name another beginning than the live run had, or the live
            run doesn't read all of its topics any more, they would be gone too. Or it can't be read just as
            far as the live run has read: rows that the live run has yet to write would be there twice.
            So it is with an old version of a Delta table that a batch names. The table keeps its log for
            `delta.logRetentionDuration` (30 days), and files that newer versions don't have for
            `delta.deletedFileRetentionDuration` (a week); `VACUUM` removes them.
        """,
        breaks="sources:\n  clicks: {gem: rate}\n" + _TO_TABLE[len(_source()) :] + _BACKFILL,
        keeps=_TO_TABLE + _BACKFILL,
    ),
    error(
        "GB454",
        "the interval isn't over in the live run",
        why="""
            Windows that the live run hasn't closed it will write later, and their rows would be there
            twice. What is over says the watermark of its last micro-batch. A pipeline that has never run
            would write all of the rows again with its first run.
        """,
        breaks="""
            $ mv checkpoints/clicks/table elsewhere
            $ gem-bundle backfill clicks.yaml --target table --from 2026-01-01 --to 2026-01-02
        """,
        keeps="""
            $ gem-bundle run clicks.yaml --available-now
            $ gem-bundle backfill clicks.yaml --target table --from 2026-01-01 --to 2026-01-02
        """,
    ),
    error(
        "GB455",
        "the live run wrote into the interval again and again",
        why="""
            Between the moment up to which a backfill reads the sources and its commit the live run wrote
            rows of the same interval. Then the step is done once more; this one was, too often, or it
            failed when rows that were written in the moment of its commit weren't back yet, which the
            message says then. The same command does the rest.
        """,
        breaks="""
            $ gem-bundle run clicks.yaml &
            $ gem-bundle backfill clicks.yaml --target table --from 2026-01-01 --to 2026-01-02
        """,
        keeps="""
            $ gem-bundle backfill clicks.yaml --target table --from 2026-01-01 --to 2026-01-02
        """,
    ),
    error(
        "GB460",
        "rejected rows can't come back in",
        why="""
            `replay` brings rejected rows in as rows of their node's input, as a batch beside the stream. What
            keeps state, what other streams come together with them, and what a sink's own query writes aren't
            there. And those that are rejected again have to go somewhere. The same is said where the node's
            input has other columns than the rows had.
        """,
        breaks="""
            sources:
              ticks: {gem: rate}
            transforms:
              even: {gem: expect, input: ticks, options: {rules: {even: value % 2 = 0}}}
            targets:
              table: {gem: delta, input: even, options: {path: tables/even}}

            $ gem-bundle replay clicks.yaml even --from tables/odd
        """,
        keeps="""
            sources:
              ticks: {gem: rate}
            transforms:
              even: {gem: expect, input: ticks, options: {rules: {even: value % 2 = 0}}}
            targets:
              table: {gem: delta, input: even, group: both, options: {path: tables/even}}
              others: {gem: delta, input: even.rejected, options: {path: tables/odd}}

            $ gem-bundle replay clicks.yaml even --from tables/odd
        """,
    ),
    error(
        "GB461",
        "there are no rejected rows in a place",
        why="""
            `replay` and `rejected` read what a target has made of a node's output `rejected`, with all of its
            columns: a Delta table, a topic, or a folder of Parquet, ORC or JSON files. The place has no such
            rows, or a condition can't be used on them.
        """,
        breaks="""
            $ gem-bundle rejected clicks.yaml --in tables/clicks
        """,
        keeps="""
            $ gem-bundle rejected clicks.yaml --in tables/rejected
        """,
    ),
)
