"""The page, driven over HTTP and in a real browser."""
