"""Matrix in, private answers out: strategies, exact noise, accounting, ledger. Knows no SQL."""
