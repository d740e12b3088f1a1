"""What a user may see, and how much a namespace holds."""
