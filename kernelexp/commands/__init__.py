"""What a command does beyond one call of the runner: a module each."""
