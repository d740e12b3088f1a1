"""The engines of the settings: what they have, whether they work, and the namespaces on them."""
