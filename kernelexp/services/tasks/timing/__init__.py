"""A solution timed beside the reference: the processes that are timed, the process that has the
answers, and the timer between them. Knows tasks and workplaces, but not the earlier stages."""
