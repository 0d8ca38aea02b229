"""The pipeline file: read with positions, parameters filled in, checked for shape."""
