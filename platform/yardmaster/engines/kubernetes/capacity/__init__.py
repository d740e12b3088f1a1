"""What a cluster has for jobs: its nodes, and what pods hold of them."""
