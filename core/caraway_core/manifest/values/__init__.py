"""The values of a manifest as frozen dataclasses, for the rest of the system."""
