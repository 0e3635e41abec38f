"""Trees and boosting that decide: splits by the cost of decisions, and regression trees on the gradient of a loss."""
