"""Makes OpenLineage's events of what happens in a run."""

from __future__ import annotations

import os
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Self

from gem_bundle.pipeline.secrets import hidden
from gem_bundle.run.moments import now_text
from gem_bundle.run.openlineage.client import Sender
from gem_bundle.run.openlineage.datasets import Dataset, datasets, origins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.facts import Column
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.progress import MicroBatch, Totals
    from gem_bundle.run.report import Report
    from gem_bundle.run.steering import StopRequest
    from gem_bundle.run.supervisor import View

NAMESPACE = "gem-bundle"
"""The namespace of jobs where the variable `OPENLINEAGE_NAMESPACE` names no other."""


class LineageView:
    """A view that passes everything on to another, and tells by events what is read and written.

    The pipeline is a job, and each target is one, ``<pipeline>.<target>``. A start of a target's query is a
    run of its job, within the pipeline's: it starts, tells the rows of each micro-batch, and completes or
    fails.

    Args:
        place: Where events go to: a URL, or a file.
        plan: The pipeline.
        targets: The targets of the run.
        stop: How their queries are.
        view: Who is told too.
        warn: Who is told when an event can't be sent.
        environment: Environment variables; None is the process's.
    """

    def __init__(
        self,
        place: str,
        plan: Plan,
        targets: Iterable[Node],
        stop: StopRequest,
        view: View,
        warn: Callable[[Diagnostic], None] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        from openlineage.client.uuid import generate_new_uuid

        variables = os.environ if environment is None else environment
        self._new_id = generate_new_uuid
        self._namespace = variables.get("OPENLINEAGE_NAMESPACE", "").strip() or NAMESPACE
        self._plan = plan
        self._stop = stop
        self._view = view
        self._report: Report | None = None
        self._sender = Sender(place, warn)
        self._own = str(self._new_id())
        self._runs: dict[str, str] = {}
        self._starts: dict[str, int] = {}
        self._parts = {node.id: self._of_target(node) for node in targets}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self._report is not None:
            for target in list(self._runs):
                self._end(target, "FAIL", str(error))
            self._emit_own("FAIL", str(error))
        self._sender.close()

    def started(self, report: Report) -> None:
        """All queries run."""
        self._report = report
        self._emit_own("START")
        if self._plan.definition.mode == "batch":
            for target in report.targets:
                self._begin(target)
        self._look()
        self._view.started(report)

    def progress(self, batch: MicroBatch, totals: Totals) -> None:
        """A micro-batch ended."""
        self._look()
        self._emit(totals.target, "RUNNING", batch.rows_out)
        self._view.progress(batch, totals)

    def tick(self) -> None:
        """A moment has passed."""
        self._look()
        self._view.tick()

    def stopping(self, reason: str) -> None:
        """The queries are asked to stop."""
        self._look()
        self._view.stopping(reason)

    def happened(self, event: str, facts: Mapping[str, Any]) -> None:
        """Something else happened to a target."""
        if event == "restarting":
            failure = facts.get("failure") or {}
            self._end(facts["target"], "FAIL", str(failure.get("message", facts["reason"])))
        self._view.happened(event, facts)

    def ended(self, report: Report) -> None:
        """The run is over."""
        failed = "; ".join(found.message for found in report.diagnostics if found.is_error)
        if self._report is not None:
            for target in list(self._runs):
                failure = self._stop.failures.get(target)
                own = self._stop.states.get(target) == "failed" or (
                    self._plan.definition.mode == "batch" and not report.ok
                )
                said = failure.message if failure is not None else failed
                self._end(target, "FAIL" if own else "COMPLETE", said, report.targets[target].rows_out)
            self._emit_own("COMPLETE" if report.ok else "FAIL", failed)
            self._report = None
        self._view.ended(report)

    def _look(self) -> None:
        """Tell of queries that were started, stopped or have failed since the last look."""
        for target, starts in self._stop.starts.items():
            if starts > self._starts.get(target, 0):
                self._starts[target] = starts
                self._end(target, "COMPLETE")
                self._begin(target)
        for target, state in self._stop.states.items():
            if state in {"finished", "stopped", "failed"} and target in self._runs:
                failure = self._stop.failures.get(target)
                self._end(
                    target, "FAIL" if state == "failed" else "COMPLETE", failure.message if failure else ""
                )

    def _begin(self, target: str) -> None:
        self._runs[target] = str(self._new_id())
        self._emit(target, "START")

    def _end(self, target: str, kind: str, why: str = "", rows: int | None = None) -> None:
        if target in self._runs:
            self._emit(target, kind, rows if self._plan.definition.mode == "batch" else None, why)
            del self._runs[target]

    def _emit_own(self, kind: str, why: str = "") -> None:
        """An event of the pipeline."""
        from openlineage.client.event_v2 import Job, Run

        inputs = {(d.namespace, d.name): d for part in self._parts.values() for d in part.inputs}
        outputs = {
            (d.namespace, d.name): (d, name) for name, part in self._parts.items() for d in part.outputs
        }
        self._send(
            kind,
            Run(self._own, self._run_facets(kind, why)),
            Job(self._namespace, self._plan.definition.name, self._job_facets("PIPELINE")),
            [self._input(dataset) for dataset in inputs.values()],
            [self._output(dataset, self._parts[name], None) for dataset, name in outputs.values()],
        )

    def _emit(self, target: str, kind: str, rows: int | None = None, why: str = "") -> None:
        """An event of a target."""
        from openlineage.client.event_v2 import Job, Run
        from openlineage.client.facet_v2 import parent_run

        part, run = self._parts.get(target), self._runs.get(target)
        if part is None or run is None:
            return
        name = self._plan.definition.name
        parent = parent_run.ParentRunFacet(
            run=parent_run.Run(self._own), job=parent_run.Job(self._namespace, name)
        )
        self._send(
            kind,
            Run(run, {"parent": parent, **self._run_facets(kind, why)}),
            Job(self._namespace, f"{name}.{target}", self._job_facets("QUERY")),
            [self._input(dataset) for dataset in part.inputs],
            [self._output(dataset, part, rows) for dataset in part.outputs],
        )

    def _send(self, kind: str, run: Any, job: Any, inputs: list[Any], outputs: list[Any]) -> None:
        from openlineage.client.event_v2 import RunEvent, RunState

        producer = f"https://pypi.org/project/gem-bundle/{version('gem-bundle')}"
        self._sender.send(
            RunEvent(
                eventTime=now_text(),
                eventType=RunState[kind],
                run=run,
                job=job,
                inputs=inputs,
                outputs=outputs,
                producer=producer,
            )
        )

    def _run_facets(self, kind: str, why: str) -> dict[str, Any]:
        from openlineage.client.facet_v2 import error_message_run, processing_engine_run

        own = version("gem-bundle")
        found: dict[str, Any] = {
            "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
                version=version("pyspark"), name="spark", openlineageAdapterVersion=own
            )
        }
        if kind == "FAIL":
            found["errorMessage"] = error_message_run.ErrorMessageRunFacet(
                message=hidden(why), programmingLanguage="PYTHON"
            )
        return found

    def _job_facets(self, kind: str) -> dict[str, Any]:
        from openlineage.client.facet_v2 import documentation_job, job_type_job

        is_stream = self._plan.definition.mode == "stream"
        processing = "STREAMING" if is_stream else "BATCH"
        found: dict[str, Any] = {
            "jobType": job_type_job.JobTypeJobFacet(
                processingType=processing, integration="GEM_BUNDLE", jobType=kind
            )
        }
        if self._plan.definition.description:
            found["documentation"] = documentation_job.DocumentationJobFacet(
                self._plan.definition.description
            )
        return found

    def _input(self, dataset: Dataset) -> Any:
        from openlineage.client.event_v2 import InputDataset

        return InputDataset(hidden(dataset.namespace), hidden(dataset.name), facets=_schema(dataset.columns))

    def _output(self, dataset: Dataset, part: _Part, rows: int | None) -> Any:
        from openlineage.client.event_v2 import OutputDataset
        from openlineage.client.facet_v2 import column_lineage_dataset, output_statistics_output_dataset

        facets = _schema(dataset.columns)
        if part.columns:
            facets["columnLineage"] = column_lineage_dataset.ColumnLineageDatasetFacet(
                fields={
                    column: column_lineage_dataset.Fields(
                        inputFields=[
                            column_lineage_dataset.InputField(hidden(d.namespace), hidden(d.name), name)
                            for d, name in inputs
                        ]
                    )
                    for column, inputs in part.columns.items()
                }
            )
        counted: dict[str, Any] = {}
        if rows is not None:
            counted["outputStatistics"] = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                rowCount=rows
            )
        return OutputDataset(
            hidden(dataset.namespace), hidden(dataset.name), facets=facets, outputFacets=counted
        )

    def _of_target(self, node: Node) -> _Part:
        plan = self._plan
        sources = [plan.node(name) for name in plan.upstream([node.id]) if plan.node(name).kind == "source"]
        inputs = datasets(plan, sources, self._namespace)
        outputs = datasets(plan, [node], self._namespace)
        facts = plan.facts.get(node.inputs[0].key)
        reaching = (facts.columns or ()) if facts is not None else ()
        names = {column.name.lower(): column.name for column in reaching}
        of_sources = {
            source.id: {c.name.lower(): c.name for c in found.columns or ()}
            for source in sources
            if (found := plan.facts.get(source.id)) is not None
        }
        columns = {
            names[column]: [
                (dataset, of_sources.get(source, {}).get(key, key))
                for source, key in sorted(found)
                for dataset in inputs
                if dataset.node == source
            ]
            for column, found in origins(plan, node).items()
            if column in names
        }
        return _Part(inputs, outputs, {name: found for name, found in columns.items() if found})


class _Part:
    """What one target reads and writes."""

    def __init__(
        self, inputs: list[Dataset], outputs: list[Dataset], columns: dict[str, list[tuple[Dataset, str]]]
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.columns = columns


def _schema(columns: Iterable[Column]) -> dict[str, Any]:
    from openlineage.client.facet_v2 import schema_dataset

    fields = [
        schema_dataset.SchemaDatasetFacetFields(column.name, column.type or None, ordinal_position=number)
        for number, column in enumerate(columns, 1)
    ]
    return {"schema": schema_dataset.SchemaDatasetFacet(fields)} if fields else {}
