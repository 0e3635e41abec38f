"""Linear and log-linear models, fitted exactly from sums over blocks of rows."""
