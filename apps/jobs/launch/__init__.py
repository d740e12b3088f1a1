"""The launch page: its form, choices, preview and job file. Imports nothing: `job_file` is also read in a sandbox."""
