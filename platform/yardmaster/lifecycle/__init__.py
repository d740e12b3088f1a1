"""What becomes of a job: its phases, the next step, success and failure, and what helps."""
