"""The `job:` section of a pipeline file, and the schedules in it."""
