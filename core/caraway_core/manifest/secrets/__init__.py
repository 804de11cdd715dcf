"""References to secrets in the texts of a manifest, and the stores that hold them."""
