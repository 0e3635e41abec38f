"""What all estimators share: the conventions of scikit-learn."""
