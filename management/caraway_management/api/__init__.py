"""The routes. Each names the scope that it needs, and calls use cases that know no HTTP."""
