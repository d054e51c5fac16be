"""A server that holds the data, while analysts hold a token: ``tacit serve``."""
