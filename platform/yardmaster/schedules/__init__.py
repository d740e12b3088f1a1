"""When something is to happen again and again: times from a cron expression, and what is due now. Pure."""
