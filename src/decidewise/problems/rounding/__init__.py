"""Comparisons despite rounding: which sums of costs count as equal, and which number divides all costs of a row."""
