"""Rule tables: each file rewrites one family of operations into better ones."""
