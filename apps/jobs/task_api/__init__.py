"""The API that a job's own tasks use: their order, what they report, and what they keep."""
