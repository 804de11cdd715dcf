"""What the bodies of requests have in common."""

from pydantic import BaseModel, ConfigDict


class Body(BaseModel):
    """A body whose fields are all known: one that is not is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)
