"""Processes: started, supervised, limited in time and output, and ended with their children."""
