"""The wheel in empty environments. `make test-package` runs these."""
