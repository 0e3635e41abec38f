"""Training by gradient steps: the starting parameters, the steps, the loop and its budget."""
