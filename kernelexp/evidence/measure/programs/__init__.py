"""Programs that time themselves: rounds of runs, each a new process, and what they printed."""
