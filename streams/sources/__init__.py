"""Log sources: one module each. For now files; every source gives blocks of lines from a durable place."""
