"""What a partition of an accelerated dataset is: its id, its rule, the bucket that a row falls in.

Schedulers and executors must agree on all of it, over processes and releases. Which executor holds
a partition is not here: the scheduler places them.
"""
