"""Who the executors of the cluster are, and which of them may be given work.

What is known is a value in `state`; `roll_call` is the driver that asks and acts; `registrations`
tells the other schedulers through the state store. No queries, no plans.
"""

from caraway_scheduler.membership.members import Member
from caraway_scheduler.membership.membership import Membership

__all__ = ["Member", "Membership"]
