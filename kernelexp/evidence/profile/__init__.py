"""Profiles: ncu's pages read into evidence, from a launch on this machine or from files."""
