"""A test that runs, in the order in which it happens.

- `prepared`: the pipeline, with `stand_ins` for what is outside.
- `session`: the Spark that all tests share.
- `runner`: one test from end to end, in which `engine` takes the steps, `capture` the rows that come, and
  `event_time` passes.
- `outcome`: what it came to, and `report`: how that is told.
"""
