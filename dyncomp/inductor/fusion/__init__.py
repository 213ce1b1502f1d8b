"""Which computations run together: loop nests, tiles of products, rows, parts of joins."""
