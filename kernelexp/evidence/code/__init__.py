"""Contents of a compiled variant: resources, occupancy, instructions, lines, loops."""
