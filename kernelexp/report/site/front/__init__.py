"""The first page: of each kernel its best, what changed and waits, a row for each candidate."""
