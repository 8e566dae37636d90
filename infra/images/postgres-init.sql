-- The registry's own database beside ours: it migrates its tables by itself.
CREATE DATABASE registry;
