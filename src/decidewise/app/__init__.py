"""What a shell or a browser sees: tables, pages, commands, the server."""
