"""Code from Git: addresses, which hosts may be asked, and fetching one commit in a process of its own."""
