"""What transforms have found out outside about the rows of a micro-batch, kept until the next but one.

A micro-batch may come again, after a target of its group has been written. Whoever is asked once more may
answer otherwise, and a row would be in two outputs, or in none. So the rows are written beside the checkpoint
with what was found out, and read from there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gem_bundle.files import below, open_folder, split

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Settled:
    """What was found out for the micro-batches of a group.

    Args:
        checkpoint: The location of the group's checkpoint; the files are beside it.
    """

    def __init__(self, checkpoint: str) -> None:
        self._folder, name = split(checkpoint)
        self._file = f".{name}.settled.json"
        self._place = below(self._folder, f".{name}.settled")

    def keep(self, query: str, batch_id: int, node: str, df: DataFrame) -> DataFrame:
        """The rows of a node as they were found out first.

        Args:
            query: The id of the query.
            batch_id: The number of the micro-batch.
            node: The id of the node.
            df: The rows, with what is found out when they are computed.
        """
        # Two places in turn: what is kept for one micro-batch is of no use when the next but one comes.
        place = below(self._place, str(batch_id % 2), node)
        # By number: a file may not take the names that columns have, or two of one name.
        numbered = df.toDF(*(f"c{number}" for number in range(len(df.columns))))
        known = self._known()
        if known.get("query") != query or known.get("batch") != batch_id:
            known = {"query": query, "batch": batch_id, "nodes": []}
        if node not in known["nodes"]:
            numbered.write.mode("overwrite").parquet(place)
            known["nodes"].append(node)
            open_folder(self._folder).write(self._file, json.dumps(known).encode())
        return df.sparkSession.read.schema(numbered.schema).parquet(place).toDF(*df.columns)

    def _known(self) -> dict[str, Any]:
        try:
            found = json.loads(open_folder(self._folder).read(self._file))
        except (FileNotFoundError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}
