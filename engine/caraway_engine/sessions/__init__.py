"""Sessions: plan and run statements over one catalog snapshot."""
