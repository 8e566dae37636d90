"""The front door: settings, the process harness, the command line."""
