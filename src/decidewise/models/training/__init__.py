"""Training by gradient steps: where it starts, the steps, the loop around them, and its budget."""
