"""Messages that the portal sends to servers of others: where they may go, how they are signed and written, when they
are tried again. The standard library alone."""
