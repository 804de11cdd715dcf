"""The proof that a distributed answer equals the single-node one. No product code, no network."""
