"""A job's rows and how they change: its phase, its lease, what it holds, what its tasks have told."""
