"""What the cluster says of runs: the watches and lists, and what their objects mean. Only reads."""
