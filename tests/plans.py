"""How the plans run that tests make once, over a handful of rows: as they are, and not compiled first.

Making Java of each expression and compiling that takes more of a test's time than anything else Spark does. Spark can
do without, for whole stages as for single expressions. What tests start with a Spark of its own, so what is killed or
measured, compiles its plans as ever, and with `--long` everything does. One thing was seen to fail without: Spark's
`catalog.listTables` where there is a temporary view, which `show tables` tells as well.
"""

from __future__ import annotations

from tests import samples

_NOT_COMPILED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def settings() -> dict[str, str]:
    """The settings of a Spark that many tests share."""
    return {} if samples.is_long() else dict(_NOT_COMPILED)
