"""Tests, by behaviour; one folder a room."""
