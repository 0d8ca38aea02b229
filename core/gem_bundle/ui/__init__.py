"""The page of a pipeline file that somebody works on."""
