"""Pages for a browser: charts as data, their style, and what every page shares."""
