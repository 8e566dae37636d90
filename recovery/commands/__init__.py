"""The command line, one small module a group. A module imports its room only when its command runs.

So `recovery --help` is quick, and no room is loaded by the front door that another room's process went through.
"""
