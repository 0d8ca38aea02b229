"""The text of ``main.py``, the program that spark-submit is given: it finds the bundle and starts it.

It has to run on a Python that has nothing but pyspark, on the driver, in whatever way Spark was started:

- In client mode executors get the archive of dependencies and the driver doesn't, so it is unpacked here.
- In local mode the Python workers see the driver's folders and not the archive; their path is told to Spark
  before it starts, by its absolute name.
- In cluster mode Spark has unpacked the archive into the driver's folder already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gem_bundler.bundle.manifest import Manifest

_TEXT = '''\
"""Start the bundle @TITLE@ with spark-submit. Written by gem-bundle; needs nothing but pyspark."""

import atexit
import hashlib
import os
import platform
import shutil
import sys
import tarfile
import tempfile

PACKAGE = @PACKAGE@
ARCHIVE = @ARCHIVE@
DEPS = @DEPS@
DEPS_SHA256 = @DEPS_SHA256@
PYTHON = @PYTHON@
MACHINE = @MACHINE@
HERE = os.path.dirname(os.path.abspath(__file__))


def prepare():
    """Put the bundle and what it needs on the path of the driver, and of Python workers in local mode."""
    check()
    folders = [path for path in (deps_folder(), os.path.join(HERE, ARCHIVE)) if path and os.path.exists(path)]
    for folder in folders:
        if folder in sys.path:
            sys.path.remove(folder)
        sys.path.insert(0, folder)
    paths = folders[::-1] + [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    tell_workers(folders)


def check():
    """The packages with native parts run on one version of Python and one kind of machine."""
    if PYTHON and PYTHON != "%d.%d" % sys.version_info[:2]:
        fail(
            "the bundle was built for Python %s, and this is Python %s (%s)"
            % (PYTHON, platform.python_version(), sys.executable),
            "Name a Python %s in PYSPARK_PYTHON, here and on the executors, or build the bundle for this one."
            % PYTHON,
        )
    if MACHINE and MACHINE != platform.machine() and platform.machine():
        fail(
            "the bundle was built for machines of type %s, and this is one of type %s"
            % (MACHINE, platform.machine()),
            "Build the bundle for this platform.",
        )


def deps_folder():
    """The folder with the dependencies: unpacked once and kept, or the one that Spark has unpacked."""
    if DEPS is None:
        return None
    archive = os.path.join(HERE, DEPS)
    if not os.path.isfile(archive):
        for place in (HERE, os.getcwd()):
            if os.path.isdir(os.path.join(place, "deps", "gem_bundler")):
                return os.path.join(place, "deps")
        fail("%s is missing beside main.py" % DEPS, "Copy the bundle's whole folder, or use its submit.sh.")
    folder = os.path.join(cache_folder(), DEPS_SHA256)
    if os.path.isdir(folder):
        return folder
    try:
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        work = tempfile.mkdtemp(dir=os.path.dirname(folder), prefix=".unpacking-")
    except OSError:  # a user without a home, or one that may not write there
        folder, work = None, tempfile.mkdtemp(prefix="gem-bundle-")
        atexit.register(shutil.rmtree, work, True)
    try:
        unpack(archive, work)
        if folder is None:
            return work
        try:
            os.rename(work, folder)
        except OSError:  # another start was faster
            if not os.path.isdir(folder):
                raise
        return folder
    finally:
        if folder is not None:
            shutil.rmtree(work, True)


def cache_folder():
    """Where gem-bundle keeps what it can get again; nobody else may write there."""
    chosen = os.environ.get("GEM_BUNDLE_CACHE")
    if not chosen:
        user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        chosen = os.path.join(user, "gem-bundle")
    return os.path.join(os.path.abspath(os.path.expanduser(chosen)), "deps")


def unpack(archive, folder):
    """Unpack the archive, if it is the one that was built, and nothing outside of the folder."""
    digest = hashlib.sha256()
    with open(archive, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    if digest.hexdigest() != DEPS_SHA256:
        fail("%s isn't what was built" % archive, "Copy the bundle again from where it was built.")
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            path = os.path.normpath(os.path.join(folder, member.name))
            inside = path == folder or path.startswith(folder + os.sep)
            if not inside or not (member.isfile() or member.isdir()):
                fail("%s holds a strange file, %r" % (archive, member.name), "Build the bundle again.")
            if member.isdir():
                os.makedirs(path, exist_ok=True)
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                shutil.copyfileobj(tar.extractfile(member), file)


def tell_workers(folders):
    """Python processes beside the driver import from its folders.

    In local mode these are the workers. On a cluster Spark asks Python data sources for their plans there, in
    the environment of executors, who look into the archive's folder of their own first.
    """
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return
    from pyspark import SparkContext

    master = SparkContext.getSystemProperty("spark.master") or ""
    key = "spark.executorEnv.PYTHONPATH"
    given = SparkContext.getSystemProperty(key)
    before = [given] if given else []
    if master == "local" or master.startswith("local["):
        paths = folders[::-1] + before
    else:
        paths = before + folders[::-1]
    SparkContext.setSystemProperty(key, os.pathsep.join(paths))


def fail(message, hint):
    """Say what is wrong, and end."""
    sys.stderr.write("error: %s\\n    %s\\n" % (message, hint))
    raise SystemExit(1)


if __name__ == "__main__":
    prepare()
    from gem_bundler.start import main

    raise SystemExit(main(PACKAGE))
'''


def main_py(manifest: Manifest, deps_sha256: str | None = None) -> bytes:
    """The text of a bundle's ``main.py``.

    Args:
        manifest: What is in the bundle.
        deps_sha256: The hash of the archive of dependencies, in hex, for a bundle that has one.
    """
    # What isn't for one Python and one machine is called `…-none-any.whl` (PEP 425).
    native = manifest.deps is not None and any(
        not each.file.endswith("-none-any.whl") for each in manifest.distributions
    )
    values: dict[str, object] = {
        "PACKAGE": manifest.package,
        "ARCHIVE": manifest.archive,
        "DEPS": manifest.deps,
        "DEPS_SHA256": deps_sha256,
        "PYTHON": manifest.runtime.python if native else None,
        "MACHINE": machine(manifest.runtime.platform) if native else None,
    }
    text = _TEXT.replace("@TITLE@", f"{manifest.name} {manifest.version}")
    for name, value in values.items():
        text = text.replace(f" = @{name}@\n", f" = {value!r}\n")
    return text.encode()


def machine(platform: str) -> str | None:
    """The type of machine in a platform's wheel tag: ``x86_64`` of ``manylinux2014_x86_64``."""
    known = ("x86_64", "aarch64", "ppc64le", "s390x", "arm64", "armv7l", "i686")
    return next((name for name in known if platform.endswith(f"_{name}")), None)
