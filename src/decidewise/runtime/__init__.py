"""What everything runs on: compiled kernels, batches that can be interrupted, files that are never half-written."""
