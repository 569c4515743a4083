"""Output of `calibrate`: this machine, the model of time, and the model's accuracy."""
