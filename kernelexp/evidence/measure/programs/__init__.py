"""Programs that time themselves: rounds of runs, each a new process, and the figures they print."""
