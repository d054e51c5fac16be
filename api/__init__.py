"""tacit answers a batch of SQL queries under differential privacy."""
