"""`python -m recovery`, for where the script `recovery` is not installed."""

from recovery.cli import main

main()
