"""Parts shared by all estimators: what a learner can do, and calls that fail without side effects."""
