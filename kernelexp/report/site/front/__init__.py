"""The first page: the best of each kernel, what changed, what is pending, a row per candidate."""
