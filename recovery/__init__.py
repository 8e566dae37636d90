"""The front door: command line, settings, logging, metrics, health, and the harness of every process."""
