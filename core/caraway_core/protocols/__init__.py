"""The protocols between components, one module each; adapters implement or use them."""
