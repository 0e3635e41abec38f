"""What every room uses: checks, errors, progress, compiled kernels, interrupts, files. Private."""
