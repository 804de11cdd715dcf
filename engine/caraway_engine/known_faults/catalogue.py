"""The known faults of DataFusion, by name, with what will make each remedy unnecessary.

`docs/reference/sql-limits.md` lists them; a test writes that list from this one.
"""

from caraway_engine.known_faults.faults_of_plans import OF_PLANS
from caraway_engine.known_faults.faults_of_types import OF_TYPES
from caraway_engine.known_faults.faults_of_values import OF_VALUES

FAULTS = (*OF_VALUES, *OF_TYPES, *OF_PLANS)
