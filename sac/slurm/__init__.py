"""Slurm's own commands and what they print, behind three-valued answers."""
