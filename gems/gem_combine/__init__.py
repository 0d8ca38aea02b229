"""Several inputs into one: joins, unions, set operations, lookups, comparisons and nearly equal rows."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("transform", "join", "gem_combine.join:Join")
    register("transform", "union", "gem_combine.union:Union")
    register("transform", "set_operation", "gem_combine.set_operation:SetOperation")
    register("transform", "lookup", "gem_combine.lookup:Lookup")
    register("transform", "compare", "gem_combine.compare:Compare")
    register("transform", "fuzzy_match", "gem_combine.fuzzy_match:FuzzyMatch")
