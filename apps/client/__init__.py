"""The command and SDK as the portal gives them to people: a wheel, its page, and which versions of it are served."""
