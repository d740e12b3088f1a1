"""What datasets and code have in common: a named thing in a namespace whose immutable, numbered versions are each made
of one complete upload. Each app has its own tables and adds what is its own (previews, archives)."""
