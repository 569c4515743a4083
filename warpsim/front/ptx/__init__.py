"""PTX text as data: modules, entries, instructions, operands."""
