"""Whose line is it? The attempts that may write to a path, the times of lines, and what they say of their origin."""
