"""Compiled kernels, batches and runs that can be interrupted, and files that are never half-written."""
