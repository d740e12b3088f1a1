"""What can be said of a script without running it."""
