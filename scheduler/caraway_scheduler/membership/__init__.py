"""Tracks the executors of the cluster, and decides which of them may receive work.

`state` is a pure state machine, `roll_call` its driver. `registrations` publishes executors to the
state store. This package does not depend on queries or plans.
"""

from caraway_scheduler.membership.members import Member
from caraway_scheduler.membership.membership import Membership
from caraway_scheduler.membership.roll_call import RollListener

__all__ = ["Member", "Membership", "RollListener"]
