"""The portal's pages in a real Chromium, as people use them."""
