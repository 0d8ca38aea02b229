"""GB640 to GB649: the dependencies of a bundle, Python's and the jars."""

from __future__ import annotations

from gem_bundle.codes.code import error, warning

BUNDLE_DEPENDENCIES = (
    error(
        "GB640",
        "pip is missing or too old",
        why="""
            pip finds the dependencies of a bundle and downloads them, so that they are chosen exactly as an
            installation would choose them. Virtual environments that uv makes come without it, and those
            that Python makes have the pip of that Python's release, which is too old as a rule: it takes
            pip 26.2. A thin bundle has no dependencies in it and is built without pip.
        """,
        breaks="$ pip install pip==23.2.1 && gem-bundle build clicks.yaml",
        keeps="$ pip install --upgrade pip && gem-bundle build clicks.yaml",
    ),
    error(
        "GB641",
        "no such platform or Python to build for",
        why="""
            Native parts of dependencies are built for a processor, a C library and a minor version of
            Python. The platform is a tag as wheels have it in their names; manylinux2014_x86_64, which is
            taken when nothing is said, runs on every Linux of the last ten years. The Python is the one
            of the cluster's nodes, driver and executors alike.
        """,
        breaks="$ gem-bundle build clicks.yaml --platform linux",
        keeps="$ gem-bundle build clicks.yaml --platform manylinux_2_28_x86_64",
        source="PEP 425, PEP 600",
    ),
    error(
        "GB642",
        "a dependency has no wheel for the platform",
        why="""
            A bundle is made of wheels only: nothing is compiled on the way, since the result would depend
            on the machine. The message says for what there are wheels. If the cluster's machines are newer
            than manylinux2014, name their platform; if there is only source code, make a wheel of it once
            and put it into a folder that PIP_FIND_LINKS names.
        """,
        breaks="$ gem-bundle build clicks.yaml --platform manylinux1_x86_64",
        keeps="$ gem-bundle build clicks.yaml --platform manylinux2014_x86_64",
    ),
    error(
        "GB643",
        "the dependencies contradict each other",
        why="""
            Two distributions need a third one in versions that exclude each other, or need another Spark
            than the one that the bundle is built for. pip's explanation is in the message. The versions of
            plugins are those that are installed; so `pip check` often says the same.
        """,
        breaks="$ pip install pydantic==1.10.24 && gem-bundle build clicks.yaml",
        keeps="$ pip install --upgrade gem-bundle && gem-bundle build clicks.yaml",
    ),
    error(
        "GB644",
        "the index of Python packages can't be reached",
        why="""
            What isn't in the cache comes from the index that pip is set up for, with pip's certificates and
            proxies. A build with a lock whose files are in the cache needs no network, nor does one that
            finds all wheels in a folder that PIP_FIND_LINKS names.
        """,
        breaks="$ PIP_INDEX_URL=https://pypi.invalid/simple gem-bundle build clicks.yaml",
        keeps="$ PIP_NO_INDEX=1 PIP_FIND_LINKS=wheels gem-bundle build clicks.yaml",
    ),
    error(
        "GB645",
        "a file is another one than the lock names",
        why="""
            A lock has the hash of every file, and a file with another hash is never taken. A released wheel
            or jar doesn't change: when one does, somebody replaced it, or the download was cut short.

            What is packed from an installation on this machine changes with that installation.
        """,
        breaks="$ PIP_FIND_LINKS=wheels gem-bundle build clicks.yaml",
        keeps="$ PIP_FIND_LINKS=wheels gem-bundle build clicks.yaml --update-lock",
    ),
    error(
        "GB646",
        "a lock was made for something else",
        why="""
            A lock holds for the gems, the Python, the platform and the Spark that it was made for. When one
            of them changes, other files are needed, and a build that took them by itself would not be the
            one that was reviewed. The message says what changed.
        """,
        breaks="$ pip install --upgrade gem-bundle && gem-bundle build clicks.yaml",
        keeps="$ pip install --upgrade gem-bundle && gem-bundle build clicks.yaml --update-lock",
    ),
    error(
        "GB647",
        "a lock can't be read or written",
        why="""
            The locks are kept beside the pipeline, `<pipeline>.deps.lock` and `<pipeline>.jars.lock`, and
            belong into version control. One that was edited by hand, has a merge conflict in it, or was
            written by another version of gem-bundle isn't guessed at.
        """,
        breaks="$ mv notes.txt clicks.deps.lock && gem-bundle build clicks.yaml",
        keeps="$ rm clicks.deps.lock && gem-bundle build clicks.yaml",
    ),
    error(
        "GB648",
        "an installed distribution can't be packed",
        why="""
            The runtime and the plugins go into the bundle in the versions that are installed. One that came
            from no index, because it is installed in editable mode or from a folder, a file or a repository,
            is packed from its files; its version is marked `+editable` where they can change at any time.
            That works for pure Python code. Native parts that were compiled in place run on machines like
            this one only.
        """,
        breaks="$ pip install --editable native-gems && gem-bundle build clicks.yaml",
        keeps="$ pip install native-gems && gem-bundle build clicks.yaml",
        source="PEP 610, PEP 660",
    ),
    warning(
        "GB649",
        "a thin bundle needs what no index has",
        why="""
            A thin bundle leaves its dependencies to the cluster, which installs the exact versions that the
            wheel names. A distribution that is installed here in editable mode, or from a folder, a file or
            a repository, isn't in an index in that form, so the cluster will not find it, or find another
            one of the same version. Publish it, or build without --thin: then its files are in the bundle.
        """,
        breaks="$ pip install --editable acme-gems && gem-bundle build --thin clicks.yaml",
        keeps="$ pip install acme-gems && gem-bundle build --thin clicks.yaml",
    ),
)
