"""What a job is on a cluster: pure builders, a spec and a key in, plain dicts out. Also names, labels, options."""
