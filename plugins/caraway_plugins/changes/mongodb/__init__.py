"""Changes of collections of MongoDB."""
