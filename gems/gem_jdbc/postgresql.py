"""PostgreSQL: how it takes each micro-batch once.

Spark's writer commits each of its tasks by itself, and may run one of them again. So it writes into a
staging table, in which each row has a number of its own and the transaction that wrote it: of transactions
with the same rows the first one counts. A block then moves the rows and notes the number of the
micro-batch, all or nothing.

The staging table is unlogged, which makes it fast, and empty after a crash of the server. Its first row,
written before Spark's, tells whether that has happened.
"""

from collections.abc import Sequence

from gem_jdbc.transactions import BATCH, Move

ROW = "gem_bundle_row"
_WRITER = "gem_bundle_writer"
_RANK = "gem_bundle_rank"
_SAID = "gem_bundle.outcome"


class PostgresTransactions:
    """Blocks of PL/pgSQL, each of them a transaction."""

    outcome = f"SELECT current_setting('{_SAID}', true) AS outcome"
    row = ROW

    def has_key(self, table: str, keys: Sequence[str]) -> str:
        """Ask for a unique index over just these columns that `ON CONFLICT` can use."""
        names = ", ".join(_text(key) for key in keys)
        return (
            "SELECT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = "
            f"to_regclass({_text(table)}) AND i.indisunique AND i.indimmediate AND i.indpred IS NULL "
            "AND i.indexprs IS NULL AND (SELECT array_agg(a.attname::text ORDER BY a.attname::text COLLATE "
            '"C") FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum = ANY '
            "((i.indkey::int2[])[0:i.indnkeyatts - 1])) = (SELECT array_agg(n ORDER BY n COLLATE "
            f'"C") FROM unnest(ARRAY[{names}]::text[]) n)) AS found'
        )

    def add_key(self, table: str, keys: Sequence[str]) -> str:
        """Make them the primary key, unless there is one."""
        relation = f"to_regclass({_text(table)})"
        return _block(
            f"""
            IF NOT EXISTS (SELECT 1 FROM pg_index WHERE indrelid = {relation} AND indisprimary) THEN
                ALTER TABLE {table} ADD PRIMARY KEY ({_names(keys)});
            END IF;
            """,
            "done",
        )

    def prepare(self, transactions: str, table: str) -> str:
        """Make it one at a time: two at once fail, though both ask whether it is there."""
        return _block(
            f"""
            IF to_regclass({_text(transactions)}) IS NULL THEN
                PERFORM pg_advisory_xact_lock(hashtext('gem_bundle_transactions'));
                CREATE TABLE IF NOT EXISTS {transactions} (
                    query text NOT NULL,
                    target text NOT NULL,
                    micro_batch bigint NOT NULL,
                    stage text,
                    at timestamptz NOT NULL,
                    PRIMARY KEY (query, target)
                );
            END IF;
            FOR gem_bundle_old IN
                DELETE FROM {transactions} WHERE query LIKE '{BATCH}%' AND at < now() - interval '7 days'
                    RETURNING stage
            LOOP
                IF gem_bundle_old IS NOT NULL THEN
                    EXECUTE 'DROP TABLE IF EXISTS ' || gem_bundle_old;
                END IF;
            END LOOP;
            IF to_regclass({_text(table)}) IS NULL THEN
                {_say("absent")}
                RETURN;
            END IF;
            """,
            "there",
            "gem_bundle_old text;",
        )

    def begin(self, move: Move) -> str:
        """Make the staging table with its first row, and drop the one that a killed run has left."""
        columns = _names(move.columns)
        return _block(
            f"""
            SELECT micro_batch, stage INTO gem_bundle_last, gem_bundle_old FROM {move.transactions} WHERE
            {_whose(move)} FOR UPDATE; IF gem_bundle_last >= {move.number} THEN
                {_say("done")}
                RETURN;
            END IF;
            -- This is run again: rows may be in it.
            IF gem_bundle_old = {_text(move.stage)} AND to_regclass({_text(move.stage)}) IS NOT NULL THEN
                {_say("begun")}
                RETURN;
            END IF;
            IF gem_bundle_old IS NOT NULL THEN
                EXECUTE 'DROP TABLE IF EXISTS ' || gem_bundle_old;
            END IF;
            INSERT INTO {move.transactions} (query, target, micro_batch, stage, at)
                VALUES ({_text(move.query)}, {_text(move.table)}, -1, {_text(move.stage)}, now())
                ON CONFLICT (query, target) DO UPDATE SET stage = EXCLUDED.stage;
            CREATE UNLOGGED TABLE {move.stage} AS SELECT {columns} FROM {move.table} WITH NO DATA;
            ALTER TABLE {move.stage}
                ADD COLUMN {ROW} bigint, ADD COLUMN {_WRITER} bigint DEFAULT txid_current();
            INSERT INTO {move.stage} ({ROW}) VALUES (-1);
            """,
            "begun",
            "gem_bundle_last bigint; gem_bundle_old text;",
        )

    def move(self, move: Move) -> str:
        """Move the rows of each task's first transaction; of one that ran twice, both begin with one row."""
        stage = move.stage
        return _block(
            f"""
            SELECT micro_batch INTO gem_bundle_last FROM {move.transactions} WHERE {_whose(move)} FOR UPDATE;
            IF gem_bundle_last >= {move.number} THEN
                {_say("done")}
                RETURN;
            END IF;
            IF to_regclass({_text(stage)}) IS NULL THEN
                {_say("lost")}
                RETURN;
            END IF;
            IF NOT EXISTS (SELECT 1 FROM {stage} WHERE {ROW} = -1) THEN
                {_say("lost")}
                RETURN;
            END IF;
            SELECT array_agg(writer) INTO gem_bundle_writers FROM (
                SELECT min(writer) AS writer FROM (
                    SELECT {_WRITER} AS writer, min({ROW}) AS first FROM {stage} WHERE {ROW} >= 0 GROUP BY 1
                ) written GROUP BY first
            ) counted;
            {_without_nulls(move)}
            BEGIN
                {f"DELETE FROM {move.table};" if move.replace else ""}
                {_insert(move)}
            EXCEPTION WHEN cardinality_violation THEN
                {_say("several")}
                RETURN;
            END;
            UPDATE {move.transactions} SET micro_batch = {move.number}, stage = NULL, at = now()
                WHERE {_whose(move)};
            DROP TABLE {stage};
            """,
            "done",
            "gem_bundle_last bigint; gem_bundle_writers bigint[];",
        )


def _insert(move: Move) -> str:
    """The statement that adds the rows, or puts them in the place of those with the same keys."""
    columns = _names(move.columns)
    rows = f"{move.stage} WHERE {ROW} >= 0 AND {_WRITER} = ANY (gem_bundle_writers)"
    if move.sequence is not None:
        last = f"ORDER BY {_name(move.sequence)} DESC NULLS LAST"
        rank = f"rank() OVER (PARTITION BY {_names(move.keys)} {last}) AS {_RANK}"
        rows = f"(SELECT *, {rank} FROM {rows}) ranked WHERE {_RANK} = 1"
    insert = f"INSERT INTO {move.table} AS there ({columns}) SELECT {columns} FROM {rows}"
    if not move.keys:
        return f"{insert};"
    others = [_name(column) for column in move.columns if column not in move.keys]
    if not others:
        return f"{insert} ON CONFLICT ({_names(move.keys)}) DO NOTHING;"
    change = ", ".join(f"{column} = EXCLUDED.{column}" for column in others)
    newer = ""
    if move.sequence is not None:
        column = _name(move.sequence)
        newer = f" WHERE there.{column} IS NULL OR EXCLUDED.{column} >= there.{column}"
    return f"{insert} ON CONFLICT ({_names(move.keys)}) DO UPDATE SET {change}{newer};"


def _without_nulls(move: Move) -> str:
    """A null key is equal to none, not even to itself."""
    if not move.keys:
        return ""
    null = " OR ".join(f"{_name(key)} IS NULL" for key in move.keys)
    return f"""
            IF EXISTS (SELECT 1 FROM {move.stage} WHERE {ROW} >= 0 AND ({null})) THEN
                {_say("null_key")}
                RETURN;
            END IF;
    """


def _whose(move: Move) -> str:
    return f"query = {_text(move.query)} AND target = {_text(move.table)}"


def _block(body: str, outcome: str, variables: str = "") -> str:
    declared = f"DECLARE {variables}" if variables else ""
    quote = "$gem_bundle$"
    while quote in body:  # a column can be called anything
        quote = f"{quote[:-1]}_$"
    return f"DO {quote} {declared} BEGIN {body} {_say(outcome)} END {quote}"


def _say(outcome: str) -> str:
    return f"PERFORM set_config('{_SAID}', '{outcome}', false);"


def _names(columns: Sequence[str]) -> str:
    return ", ".join(_name(column) for column in columns)


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _text(value: str) -> str:
    """A literal, also where a backslash isn't itself, and within a block's own quotes."""
    escaped = value.replace("\\", "\\\\").replace("'", "''").replace("$", "\\044")
    return f"E'{escaped}'"
