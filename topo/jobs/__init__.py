"""Emulated training jobs."""
