"""On the path of processes whose clock is ahead."""
