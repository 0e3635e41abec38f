"""The command line: `app.py` puts the groups of commands together."""
