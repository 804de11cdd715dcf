"""The base of the bodies of requests."""

from pydantic import BaseModel, ConfigDict


class Body(BaseModel):
    """A body whose fields are all known: one that is not is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)
