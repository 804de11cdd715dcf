"""Where in the partitions of a topic a dataset is."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from caraway_core.protocols.change_sources import PositionLostError


@dataclass(frozen=True, slots=True)
class KafkaPosition:
    """The next offset of each partition that anything was read from."""

    topic: str
    offsets: Mapping[int, int]

    def text(self) -> str:
        """Write the position down."""
        offsets = {str(number): self.offsets[number] for number in sorted(self.offsets)}
        return json.dumps({"topic": self.topic, "offsets": offsets}, separators=(",", ":"))


def read(text: str, topic: str) -> KafkaPosition:
    """Read what `Position.text` wrote.

    Raises:
        PositionLostError: it is of another topic, or of another kind of source.
    """
    try:
        content = json.loads(text)
        of, offsets = content["topic"], content["offsets"]
        position = KafkaPosition(of, {int(number): int(at) for number, at in offsets.items()})
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise PositionLostError("the position of the dataset is not one of Kafka") from exc
    if of != topic:
        raise PositionLostError(f"the rows of the dataset are of topic '{of}'; it is loaded anew")
    return position
