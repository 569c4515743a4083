"""Profiles: ncu's pages to profiled evidence, from a launch on this machine or from files."""
