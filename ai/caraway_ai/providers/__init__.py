"""The providers of models; each is loaded by name, and imports its client then."""
