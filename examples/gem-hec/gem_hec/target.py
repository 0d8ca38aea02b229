"""The target `hec`: rows as events of an HTTP event collector."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gem_bundle import Finding, GemError, Target, TargetSemantics
from gem_bundle.types import local_path
from gem_hec.collector import Address
from gem_hec.delivery import Delivery, Patience
from gem_hec.events import events, is_time
from gem_hec.options import HecOptions, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from gem_bundle import Facts, WriteContext


class HecTarget(Target[HecOptions]):
    """Send each row as an event to an HTTP event collector, such as Splunk's.

    Executors send, each partition over a connection of its own, as many events in one POST as fit. What
    isn't taken is sent again until it is, or until the query fails and its next start sends it again: no row
    is ever dropped, and some may arrive twice. An event that the collector refuses ends the query, or with
    `rejects: true` goes to the output `rejected`.
    """

    semantics = TargetSemantics(
        output_modes=frozenset({"append", "update"}),
        delivery="at_least_once",
        condition="the collector keeps what it has answered for; with `acknowledge`, what its indexers have "
        "written",
    )
    example = {
        "url": "https://splunk.example.com:8088",
        "token": "${secret:splunk/token}",
        "index": "web",
        "sourcetype": "_json",
        "time_column": "at",
    }

    def places(self) -> dict[str, list[str]]:
        """The collector, and the index where it is one for all rows."""
        index = "" if self.options.index is None else f"/{self.options.index}"
        return {"url": [f"hec://{urlsplit(self.options.url).netloc}{index}"]}

    def check(self, *inputs: Facts) -> Iterator[Finding]:
        """The columns that options name exist, and the token isn't sent for all to read."""
        (facts,) = inputs
        if self.options.in_the_clear:
            yield Finding(
                "HEC001",
                "the token and the events go over the network unencrypted",
                "Write `https://` if the collector takes it, as Splunk's does by default.",
                "url",
                "warning",
            )
        if facts.columns is None:
            return
        for option, name in self.options.columns().items():
            column = facts.column(name)
            if column is None:
                known = ", ".join(f"`{found.name}`" for found in facts.columns)
                yield Finding("GB207", f"there is no column `{name}`", f"The rows have: {known}.", option)
            elif option == "time_column" and column.type is not None and not is_time(column.type):
                yield Finding(
                    "GB205",
                    f"`{name}` is {column.type}, and not a time",
                    f"Give a timestamp, a date or a number of seconds: `cast({name} as timestamp)`.",
                    option,
                )

    def connect(self) -> Iterable[Finding]:
        """Whether the collector answers and takes the token. It is sent no event."""
        from gem_hec.preflight import check_collector

        try:
            return check_collector(self._address())
        except GemError as error:
            return [Finding(error.code, error.message, error.hint, error.option)]

    def rejects(self) -> bool:
        """Whether events that are refused are handed on, and don't end the query."""
        return self.options.rejects

    def write(self, df: DataFrame, context: WriteContext) -> None:
        """Send the rows once.

        Raises:
            GemError: When a column is missing, the certificates can't be read, or what was sent before would
                have to be replaced.
        """
        if context.output_mode == "complete":
            raise GemError("GB310", "events can't be replaced, only added to", "Use `output_mode: append`.")
        self._send(df, context)

    def write_batch(self, df: DataFrame, batch_id: int, context: WriteContext) -> None:  # noqa: ARG002
        """Send a micro-batch. When Spark runs it again, it is sent again.

        Raises:
            GemError: When a column is missing, or the certificates can't be read.
        """
        self._send(df, context)

    def _send(self, df: DataFrame, context: WriteContext) -> None:
        options = self.options
        patience = Patience(
            seconds(options.retry_for),
            seconds(options.backoff),
            seconds(options.max_backoff),
            seconds(options.acknowledge_within),
        )
        delivery = Delivery(self._address(), options.max_payload, patience)
        if options.rejects:
            context.send(df, delivery.of_each, events(df, options))
        else:
            df.select(*events(df, options)).foreachPartition(delivery)

    def _address(self) -> Address:
        options = self.options
        return Address(
            url=options.url,
            token=options.token.get_secret_value(),
            timeout=seconds(options.timeout),
            verify=options.verify_tls,
            certificates=_text(options.ca_file),
            compressed=options.gzip,
            acknowledged=options.acknowledge,
        )


def _text(file: str | None) -> str | None:
    """The certificates of a file: what is in it goes to executors, which needn't have the file."""
    if file is None:
        return None
    try:
        return Path(local_path(file) or file).read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise GemError(
            "GB505",
            f"the certificates in `{file}` can't be read: {error}",
            "Name a file on the driver with certificates as PEM text.",
            "ca_file",
        ) from error
