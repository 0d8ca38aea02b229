"""What the job definitions of all platforms have in common."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from gem_bundle import Finding, GemError
from gem_bundle.diagnostics import suggest
from gem_bundle.types import is_remote
from gem_bundler.job.section import Job

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pydantic import BaseModel

    from gem_bundler.bundle.model import Bundle, BundlePipeline

ENDING_TRIGGERS = frozenset({"available_now", "once"})
# The Python halves of what the platform itself is.
_OF_THE_PLATFORM = frozenset({"pyspark", "pyspark-client", "databricks-connect", "delta-spark", "py4j"})


def job_of(bundle: Bundle, profile: str | None = None) -> Job:
    """The job that a bundle is for, with the differences of a profile, else of the bundle's own."""
    return (bundle.job or Job()).for_profile(profile or bundle.profile)


def no_wheels(bundle: Bundle) -> list[str]:  # noqa: ARG001 (the same for all platforms)
    """The wheels that have to lie in the bundle's folder of a platform that has everything unpacked: none."""
    return []


def nothing_asked(bundle: Bundle) -> list[str]:  # noqa: ARG001 (the same for all platforms)
    """What the job of such a platform asks a package index for when it starts: nothing."""
    return []


def start_arguments(
    bundle: Bundle,
    pipeline: BundlePipeline,
    job: Job,
    *,
    root: str | None = None,
    profile: str | None = None,
    values: bool = True,
    serve: str | None = None,
) -> list[str]:
    """The arguments that a job gives to the bundle's main.

    Args:
        bundle: The bundle.
        pipeline: The pipeline that is started.
        job: The job, its profile's differences merged.
        root: What relative paths are relative to.
        profile: The profile; by default the bundle's.
        values: Whether the job's values of parameters are among them.
        serve: Where the run answers over HTTP; by default as the job says.
    """
    arguments = ["--pipeline", pipeline.name] if len(bundle.pipelines) > 1 else []
    profile = profile or bundle.profile
    if profile is not None and profile in bundle.profiles:
        arguments += ["--profile", profile]
    for assignment in assignments(pipeline, job) if values else ():
        arguments += ["-p", assignment]
    if root is not None:
        arguments += ["--root", root]
    if job.keep_alive is not None:
        arguments.append("--keep-alive")
    if serve or job.serve is not None:
        arguments += ["--serve", serve or str(job.serve)]
    return arguments


def assignments(pipeline: BundlePipeline, job: Job) -> list[str]:
    """The job's values of a pipeline's parameters, as ``name=value``."""
    declared = {parameter.name for parameter in pipeline.parameters}
    return [f"{name}={_text(v)}" for name, v in (job.parameters or {}).items() if name in declared]


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def spark_settings(pipeline: BundlePipeline) -> dict[str, str]:
    """The pipeline's Spark settings that are known now; those with references are set at start."""
    return {key: value for key, value in pipeline.spark if "${" not in value}


def title_of(bundle: Bundle, pipeline: BundlePipeline, job: Job) -> str:
    """The name that a job shows."""
    name = job.name or bundle.name
    return name if pipeline == bundle.pipelines[0] else f"{name} {pipeline.name}"


def kubernetes_name(text: str) -> str:
    """A name as Kubernetes takes it: lower-case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def installed_requirements(bundle: Bundle) -> list[str]:
    """What a cluster installs by itself, without what the platform is made of."""
    return [r for r in bundle.requires if not of_the_platform(r.partition("==")[0].lower())]


def of_the_platform(name: str) -> bool:
    """Whether a distribution, by its normalised name, is part of what every Spark platform is made of."""
    return name in _OF_THE_PLATFORM


def secret_variable(secret: str) -> str:
    """The environment variable in which a secret (``scope/key``) is looked for."""
    return "GEM_BUNDLE_SECRET_" + re.sub(r"\W", "_", secret.replace("/", "_")).upper()


def secrets_of(pipelines: Iterable[BundlePipeline]) -> list[str]:
    """The names of the secrets that pipelines need."""
    return sorted({secret for pipeline in pipelines for secret in pipeline.secrets})


def ends_by_itself(pipeline: BundlePipeline) -> bool:
    """Whether a run of the pipeline ends when everything that is there is processed."""
    return pipeline.mode == "batch" or all(t.trigger in ENDING_TRIGGERS for t in pipeline.targets)


def check_common(bundle: Bundle, job: Job, *, complete: bool = True) -> Iterator[Finding]:
    """What every platform's job must have right: the parameters, and when it runs.

    Args:
        bundle: The bundle.
        job: The job.
        complete: Whether the job must give all parameters a value: nobody else can.
    """
    given = job.parameters or {}
    declared = {parameter.name for pipeline in bundle.pipelines for parameter in pipeline.parameters}
    for name in given:
        if name not in declared:
            yield Finding(
                "GB608",
                f"`job.parameters` has `{name}`, which is no parameter of the pipeline",
                suggest(name, declared, what="parameters"),
                option=("parameters", name),
            )
    for pipeline in bundle.pipelines:
        for parameter in pipeline.parameters:
            if complete and parameter.required and parameter.name not in given:
                yield Finding(
                    "GB608",
                    f"parameter `{parameter.name}` has no default, and the job gives it no value: no run "
                    "would start",
                    "Give it one under `job.parameters`, or build with a profile that has one.",
                    option="parameters",
                )
        ending = ends_by_itself(pipeline)
        if job.continuous and ending:
            yield Finding(
                "GB616",
                f"`continuous` starts `{pipeline.name}` over and over: each run ends once everything there "
                "is processed",
                "Use `keep_alive: every 10 minutes` or a `schedule`, or a trigger that doesn't end.",
                option="continuous",
                severity="warning",
            )
        elif job.schedule is not None and not ending:
            yield Finding(
                "GB616",
                f"`schedule` starts `{pipeline.name}` once: its run doesn't end, and while it goes on every "
                "later start is skipped",
                "Use `keep_alive` or `continuous`, or the trigger `available_now`.",
                option="schedule",
                severity="warning",
            )


def check_root(bundle: Bundle, job: Job, platform: str, example: str) -> Iterator[Finding]:
    """That checkpoints lie where the next run finds them.

    Args:
        bundle: The bundle.
        job: The job.
        platform: The platform by name, for the message.
        example: A root that the platform has.
    """
    for pipeline in bundle.pipelines:
        if pipeline.mode == "batch" or job.root is not None:
            continue
        place = pipeline.checkpoints
        if not (is_remote(place) or place.startswith(("/", "${", "file:"))):
            yield Finding(
                "GB606",
                f"the checkpoints of `{pipeline.name}` are in `{place}`, relative to the driver's folder; on "
                f"{platform} that is gone with the driver, and the next run would start from the beginning",
                f"Say where relative paths are on the cluster: `job.root: {example}`.",
                option="root",
            )


def check_left_out(job: Job, names: Sequence[str], platform: str, hint: str) -> Iterator[Finding]:
    """What the job asks for and the platform has nothing for."""
    given = [n for n in names if n in job.model_fields_set and getattr(job, n) is not None]
    if given:
        verb = "is" if len(given) == 1 else "are"
        yield Finding(
            "GB610",
            f"{_listed([f'`{n}`' for n in given])} of the job {verb} left out: {platform} has no such thing",
            hint,
            option=given[0] if len(given) == 1 else None,
            severity="note",
        )


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def validated(shape: type[BaseModel], content: Mapping[str, Any], tool: str) -> dict[str, Any]:
    """A job definition, once it is sure that its tool knows every field and takes every value.

    Raises:
        GemError: GB618 when it doesn't: the tool would ignore it, or say so at deployment.
    """
    from pydantic import ValidationError

    try:
        shape.model_validate(content)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        path = ".".join(str(step) for step in detail["loc"])
        reason = detail["msg"].removeprefix("Value error, ")
        raise GemError(
            "GB618",
            f"{tool} doesn't take `{path}`: {reason}",
            "Change what the `job:` section or the pipeline's `spark:` says of it.",
        ) from None
    return dict(content)


def yaml_text(header: str, *documents: Mapping[str, Any]) -> bytes:
    """YAML as a person would write it, below a comment.

    Args:
        header: The comment, without the number signs.
        documents: The documents, keys in their order.
    """
    import yaml

    class Dumper(yaml.SafeDumper):
        """Lists are indented below their key."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 (that is the point)
            super().increase_indent(flow, False)

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 (whatever it is)
            return True

    comment = "".join(f"# {line}".rstrip() + "\n" for line in header.strip("\n").splitlines())
    bodies = [
        yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=4096)
        for document in documents
    ]
    return (comment + "\n" + "---\n".join(bodies)).encode()
