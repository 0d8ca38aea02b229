"""The page of the settings: what stands in ``gem-bundle.toml``, and the environment variables."""

from __future__ import annotations

from gem_bundle import settings
from gem_bundle.describe.facts import describe_fields
from gem_bundle.describe.markdown import options_table, table
from gem_bundle.pipeline import secrets
from gem_bundle.plugins import BLOCK, PICK
from gem_bundle.reference.docstrings import docstring_markdown
from gem_bundle.run import jars
from gem_bundle.run.serving import address

ENVIRONMENT = {
    settings.SETTINGS: "A settings file that is read too, and whose values win.",
    PICK: "The only plugins to load, by the names of their entry points, with commas between them.",
    BLOCK: "Plugins not to load.",
    f"{secrets.VARIABLE}<SCOPE>_<KEY>": "The secret `${secret:scope/key}`, in capitals, with `_` "
    "in place of what is no letter or digit.",
    secrets.FOLDER: "A folder with secrets: the file `<scope>/<key>` holds the value.",
    jars.CACHE: "Where jars and resolved dependencies are kept; by default `gem-bundle` in the user's "
    "cache folder.",
    address.TOKEN: "What requests to the server of `run --serve` have to carry; one that other machines "
    "reach needs it.",
    "JAVA_HOME": "The Java to run Spark on; by default the first one on the search path.",
    "SPARK_HOME": "The Spark to run; by default the one inside pyspark.",
    "SPARK_REMOTE": "The Spark Connect server to run on. Then no session is started here.",
    "NO_COLOR": "With any value, nothing is printed in colour.",
}
"""What gem-bundle looks up in the environment."""


def settings_page() -> str:
    """The settings of a project, and the environment variables."""
    rows = [(f"`{name}`", text) for name, text in ENVIRONMENT.items()]
    return "\n\n".join(
        [
            "# Settings",
            docstring_markdown(settings.__doc__ or "").replace("```python", "```toml"),
            "## The file",
            options_table(describe_fields(settings.settings_model()), "key"),
            "## The environment",
            table(("variable", "what it is for"), rows),
        ]
    )
