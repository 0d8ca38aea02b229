"""The options of the target `delta`: which table, and what becomes of its rows."""

from typing import Literal, Self

from pydantic import model_validator

from gem_bundle import Field, Options
from gem_bundle.merging import MergeOptions
from gem_bundle.types import Expression, StringList
from gem_delta.connection import DeltaOptions, RawOptions
from gem_delta.merging import HistoryOptions

SaveMode = Literal["append", "overwrite", "error", "ignore"]
BATCH_ONLY = ("save_mode", "replace_where", "partition_overwrite_mode")
_WRITERS = (*BATCH_ONLY, "overwrite_schema", "spark_options")


class TableOperations(Options):
    """What is done to a table between micro-batches."""

    every: int = Field(
        100, gt=0, description="After how many micro-batches; after each run of a batch pipeline it is done."
    )
    optimize: bool = Field(True, description="Whether small files are made larger ones.")
    z_order_by: StringList = Field(
        [],
        description="Columns by which rows are put together in files meanwhile; not those of partitions.",
        examples=[["country"]],
    )
    vacuum: bool = Field(
        False,
        description="Whether files are deleted that no version has had for a week, or for as long as the "
        "table's property `delta.deletedFileRetentionDuration` says: who reads an older version needs them.",
    )

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.optimize and self.z_order_by:
            raise ValueError("`z_order_by` needs `optimize: true`")
        if not self.optimize and not self.vacuum:
            raise ValueError("there is nothing to do: give `optimize`, `vacuum` or both")
        return self

    def statements(self, table: str) -> list[tuple[str, str]]:
        """The statements that do it, each behind the option that wants it.

        Args:
            table: The table's name in SQL.
        """
        from gem_bundle.expressions import backquoted

        found = []
        if self.optimize:
            order = ", ".join(map(backquoted, self.z_order_by))
            if order:
                found.append(("z_order_by", f"optimize {table} zorder by ({order})"))
            else:
                found.append(("optimize", f"optimize {table}"))
        if self.vacuum:
            found.append(("vacuum", f"vacuum {table}"))
        return found


class DeltaTargetOptions(DeltaOptions):
    """Options of the target `delta`, from Delta's *Table streaming writes* and *Table batch writes*."""

    partition_by: StringList = Field(
        [], passed=False, description="Columns a new table is partitioned by.", examples=[["day"]]
    )
    cluster_by: StringList = Field(
        [],
        passed=False,
        max_length=4,
        description="Columns a new table is clustered by (*liquid clustering*), at most four: rows with "
        "values close to each other come into the same files when those are made larger.",
        examples=[["country", "day"]],
        change="continues",
    )
    merge_schema: bool | None = Field(
        None,
        description="Whether new columns are added to the table; else they fail the query.",
        change="continues",
    )
    overwrite_schema: bool | None = Field(
        None,
        description="Whether overwriting (`complete`) may change the columns and the partitions.",
        change="continues",
    )
    save_mode: SaveMode | None = Field(
        None,
        passed=False,
        description="What a batch does with what is there; by default it follows the output mode: "
        "`append` adds to it, `complete` overwrites it.",
        change="continues",
    )
    replace_where: Expression | None = Field(
        None,
        description="Overwrite only the rows for which this holds, in a batch.",
        examples=["day >= '2024-01-31'"],
        change="continues",
    )
    partition_overwrite_mode: Literal["static", "dynamic"] | None = Field(
        None,
        description="Whether a batch that overwrites replaces the table (`static`) or the partitions "
        "that it has rows for.",
        change="continues",
    )
    optimize_write: bool | None = Field(
        None,
        description="Whether to shuffle rows before writing, for fewer and larger files.",
        change="continues",
    )
    max_records_per_file: int | None = Field(
        None,
        gt=0,
        description="Begin another file after this many rows (default: no limit).",
        change="continues",
    )
    compression: str | None = Field(
        None, description="How the Parquet files are compressed.", examples=["zstd"], change="continues"
    )
    user_metadata: str | None = Field(
        None, description="A text that each commit carries in its history.", change="continues"
    )
    spark_options: RawOptions = Field(
        {}, advanced=True, description="Further options of Delta's writer, passed on as they are."
    )
    merge: MergeOptions | None = Field(
        None,
        passed=False,
        description="Rows change those with their key: upserts and deletes.",
        examples=[{"on": ["id"], "sequence_by": "updated_at"}],
        change="from_now_on",
    )
    history: HistoryOptions | None = Field(
        None,
        passed=False,
        description="Rows become versions of what has their key: a slowly changing dimension of type 2.",
        examples=[{"keys": ["id"], "sequence_by": "updated_at"}],
        change="from_now_on",
    )
    table_operations: TableOperations | None = Field(
        None,
        passed=False,
        description="What is done to the table every so often: small files become larger ones, and those "
        "that no version has go.",
        examples=[{"every": 50, "optimize": True, "vacuum": True}],
        change="continues",
    )

    @model_validator(mode="after")
    def _one_layout(self) -> Self:
        if not self.cluster_by:
            return self
        if self.partition_by:
            raise ValueError("give `cluster_by` or `partition_by`, one of the two")
        if self.table_operations is not None and self.table_operations.z_order_by:
            raise ValueError(
                "give `cluster_by` or `z_order_by`, one of the two: `optimize` puts a clustered table in "
                "order by its clusters"
            )
        for option in ("overwrite_schema", "partition_overwrite_mode"):
            if getattr(self, option):
                raise ValueError(
                    f"give `cluster_by` or `{option}`, one of the two: a clustered table keeps its columns, "
                    "and has no partitions"
                )
        seen: set[str] = set()
        for name in self.cluster_by:
            if name.lower() in seen:
                raise ValueError(f"`cluster_by` has `{name}` twice")
            seen.add(name.lower())
        return self

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.merge is not None and self.history is not None:
            raise ValueError("give `merge` or `history`, one of the two")
        way = "merge" if self.merge is not None else "history" if self.history is not None else None
        given = [name for name in _WRITERS if getattr(self, name)]
        if way is not None and given:
            raise ValueError(f"`{given[0]}` is for rows that are added or replaced, not for `{way}`")
        return self
