"""Readers of problems written with other libraries."""
