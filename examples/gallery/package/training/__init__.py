"""A training in a package: its modules import each other."""
