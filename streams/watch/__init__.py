"""Watch: reads job output, matches signatures, progress and checkpoints, and says whose line it is."""
