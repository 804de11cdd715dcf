"""The seams of the system, one module each; adapters stand on either side, never in between."""
