"""Job definitions: one package a platform, each whole with its checks and what the platform takes."""
