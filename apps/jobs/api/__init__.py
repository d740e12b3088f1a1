"""The REST API of jobs and engines."""
