"""The pipeline's own Python: the transforms `python` and `stateful`, and two targets."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("transform", "python", "gem_python.transform:PythonTransform")
    register("transform", "stateful", "gem_python.stateful:Stateful")
    register("target", "foreach_batch", "gem_python.foreach_batch:ForeachBatchTarget")
    register("target", "foreach", "gem_python.foreach:ForeachTarget")
