"""The first page: each kernel's best, what changed, what waits, and a row for each candidate."""
