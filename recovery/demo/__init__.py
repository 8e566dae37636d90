"""`recovery demo`: the main job, once, for real, and checked from outside our own records."""
