"""Records to text: for terminals, markdown, CSV, JSON. Nothing here runs or writes anything."""
