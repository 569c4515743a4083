"""Pages of two arms side by side, and of the steps of a history."""
