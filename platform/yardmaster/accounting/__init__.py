"""What was used, what it costs, and what a budget says of it. Pure."""
