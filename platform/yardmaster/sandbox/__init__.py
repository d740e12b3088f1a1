"""Processes with limits of time and memory, for what users supply."""
