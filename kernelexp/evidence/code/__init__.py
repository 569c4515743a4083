"""What a compiled variant holds: resources, occupancy, instructions, lines, loops."""
