"""How Kubernetes asks a run whether it is well, where its job has a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem_bundle.run.serving.address import TOKEN, is_loopback, parse_address

if TYPE_CHECKING:
    from gem_bundler.job.section import Job

__all__ = ["TOKEN", "probed_container", "serve_address", "unreachable"]

CONTAINER = "spark-kubernetes-driver"
_ALL = "0.0.0.0"  # noqa: S104 (the kubelet asks from outside of the pod, and a token keeps others out)


def serve_address(job: Job) -> str | None:
    """Where the run answers in its pod, on all addresses where the job names no host; None for nowhere."""
    if job.serve is None:
        return None
    return f"{_ALL}:{job.serve}" if job.serve.isdigit() else job.serve


def unreachable(job: Job) -> str:
    """Why no probe reaches the server of a job; empty where one does, or there is none."""
    address = serve_address(job)
    if address is None:
        return ""
    host, port = parse_address(address)
    if is_loopback(host):
        return f"at {host} nobody but the driver's pod itself reaches it"
    return "port 0 is another one with each start" if port == 0 else ""


def probed_container(job: Job) -> dict[str, Any] | None:
    """What the template of the driver's pod says of its container; None without a server.

    The server is there before Spark starts, so a start that takes long is none that hangs.
    """
    address = serve_address(job)
    if address is None:
        return None
    _, port = parse_address(address)

    def probe(path: str, failures: int) -> dict[str, Any]:
        return {
            "httpGet": {"path": path, "port": port},
            "periodSeconds": 10,
            "timeoutSeconds": 5,
            "failureThreshold": failures,
        }

    return {
        "name": CONTAINER,
        "startupProbe": probe("/health", 30),
        "livenessProbe": probe("/health", 6),
        "readinessProbe": probe("/ready", 3),
    }
