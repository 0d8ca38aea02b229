"""The image that a bundle's pods run, and the Dockerfile that makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundler.platforms.common import installed_requirements, kubernetes_name

if TYPE_CHECKING:
    from gem_bundler.bundle.model import Bundle
    from gem_bundler.job.section import Job

HOME = "/opt/bundle"
SPARK_USER = 185
_MAVEN = "https://repo1.maven.org/maven2"


def image_of(bundle: Bundle, job: Job) -> str:
    """The image that the pods run; one without tag and digest gets the bundle's version as its tag."""
    image = job.cluster.image or kubernetes_name(bundle.name)
    return image if "@" in image else tag_of(bundle, job)


def tag_of(bundle: Bundle, job: Job) -> str:
    """What to call the image when it is built: its name without a digest, and with a tag."""
    image = (job.cluster.image or kubernetes_name(bundle.name)).partition("@")[0]
    return image if ":" in image.rpartition("/")[2] else f"{image}:{version_tag(bundle)}"


def version_tag(bundle: Bundle) -> str:
    """The bundle's version where a `+` is not allowed."""
    return bundle.version.replace("+", "-")


_DOCKER_HEADER = """\
# syntax=docker/dockerfile:1
# The image of {name} {version} for both Spark operators. Written by `gem-bundle build`.
#
# From the bundle's folder:
#
#     docker build -f kubernetes/Dockerfile -t {tag} .
"""
_OWN_BASE = """
FROM {base}
USER root
"""
# Apache's image has the Python of its Linux, which is older than gem-bundle needs, so Python's own image
# is the base, and Spark and Java are copied into it. Both names can be given by digest:
# --build-arg SPARK_IMAGE=…@sha256:…
_DEFAULT_BASE = """
# By digest: --build-arg SPARK_IMAGE=apache/spark@sha256:… --build-arg PYTHON_IMAGE=python@sha256:…
ARG SPARK_IMAGE=apache/spark:{spark}-scala{scala}-java{java}-ubuntu
ARG PYTHON_IMAGE=python:{python}-slim-bookworm
FROM ${{SPARK_IMAGE}} AS spark
FROM ${{PYTHON_IMAGE}}
RUN apt-get update \\
    && apt-get install --yes --no-install-recommends gosu libnss-wrapper procps tini \\
    && rm -rf /var/lib/apt/lists/* \\
    && groupadd --system --gid {user} spark \\
    && useradd --system --uid {user} --gid spark --no-create-home --home-dir /nonexistent spark
COPY --from=spark /opt/java/openjdk /opt/java/openjdk
COPY --from=spark --chown={user}:{user} /opt/spark /opt/spark
COPY --from=spark /opt/entrypoint.sh /opt/decom.sh /opt/
ENV JAVA_HOME=/opt/java/openjdk
ENV SPARK_HOME=/opt/spark
ENV PATH=/opt/java/openjdk/bin:/opt/spark/bin:$PATH
ENV PYSPARK_PYTHON=/usr/local/bin/python3
WORKDIR /opt/spark/work-dir
ENTRYPOINT ["/opt/entrypoint.sh"]
"""


def dockerfile(bundle: Bundle, job: Job) -> str:
    """The text of the Dockerfile; it is used from the bundle's folder."""
    runtime = bundle.runtime
    lines = _DOCKER_HEADER.format(name=bundle.name, version=bundle.version, tag=tag_of(bundle, job))
    if job.cluster.base_image is not None:
        lines += _OWN_BASE.format(base=job.cluster.base_image)
    else:
        lines += _DEFAULT_BASE.format(
            spark=runtime.spark,
            scala=runtime.scala,
            java=runtime.java,
            python=runtime.python,
            user=SPARK_USER,
        )
    lines += "\n"
    if bundle.deps is not None:
        lines += f"ADD {bundle.deps} {HOME}/deps/\n"
    elif requirements := installed_requirements(bundle):
        packages = "".join(f" \\\n    '{requirement}'" for requirement in requirements)
        lines += f"RUN python3 -m pip install --no-cache-dir --target {HOME}/deps{packages}\n"
    lines += _docker_jars(bundle)
    lines += f"COPY main.py {bundle.archive} {HOME}/\n"
    lines += f"ENV PYTHONPATH={HOME}/deps:{HOME}/{bundle.archive}\n"
    return f"{lines}USER {SPARK_USER}\n"


def _docker_jars(bundle: Bundle) -> str:
    if not bundle.jars:
        return ""
    if bundle.vendored:
        return f"COPY jars/ {HOME}/jars/\n"
    lines = f"ARG MAVEN={_MAVEN}\n"
    for jar in bundle.jars:
        group, artifact, version = jar.coordinate.split(":")
        address = f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.jar"
        lines += (
            f"ADD --chmod=644 --checksum=sha256:{jar.sha256} \\\n"
            f"    ${{MAVEN}}/{address} {HOME}/jars/{jar.file}\n"
        )
    return lines
