"""Rules between the keys of a manifest, and between its components."""
