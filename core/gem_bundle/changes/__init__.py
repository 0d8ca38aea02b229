"""What an edit of a pipeline does to its checkpoints, before it runs."""
