"""What is measured against: programs that the Python with their packages runs, never imported."""
