"""What rounding leaves of a comparison: which values count as equal, and which numbers are multiples of one another."""
