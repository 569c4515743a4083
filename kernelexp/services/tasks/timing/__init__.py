"""A solution timed beside the reference: the processes that are timed, the one that knows the
answers, and the clock between them. Knows tasks and workplaces, nothing of the earlier stages."""
