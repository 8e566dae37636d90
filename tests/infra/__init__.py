"""Tests of the local stack: real servers, killed and started again."""
