"""Facts about variants: one module per kind of fact."""
