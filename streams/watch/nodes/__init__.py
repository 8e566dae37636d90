"""What nodes say of themselves: their kernel and system logs, and their metrics."""
