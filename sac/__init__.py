"""The Slurm Advisor Controller: observe, plan (pure), act, verify on the next look; and the watchdog beside it."""
