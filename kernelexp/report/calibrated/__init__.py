"""What `calibrate` prints: of this machine, of the model of time, and how right the model is."""
