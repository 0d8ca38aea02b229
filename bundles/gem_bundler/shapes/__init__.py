"""Closed models of what the tools take that read our job definitions."""
