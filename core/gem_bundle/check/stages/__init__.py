"""The stages of a check, in the order in which they run.

- `graph`: nodes get their rows from nodes that there are.
- `gems`: each node is a gem with valid options; `sections`: so are the parts of the file that plugins read.
- `inference`: facts flow along the graph, with the columns that `connect` finds outside.
- `places` and `versions`: rules of what nodes share, and of what Spark has. Those of streams are in
  `gem_bundle.check.streaming`.
- `plugin_rules`: what the rules of plugins find.
- `silence`: what nobody wants to hear is left out.
"""
