"""Runs as others see them: records beside the checkpoints, whether they live, what they are asked."""
