"""The position of a dataset in the partitions of a topic, stored as text."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from caraway_core.protocols.change_sources import PositionLostError


@dataclass(frozen=True, slots=True)
class KafkaPosition:
    """The next offset of each partition that has been read."""

    topic: str
    offsets: Mapping[int, int]

    def text(self) -> str:
        """Encode the position as text."""
        offsets = {str(number): self.offsets[number] for number in sorted(self.offsets)}
        return json.dumps({"topic": self.topic, "offsets": offsets}, separators=(",", ":"))


def read(text: str, topic: str) -> KafkaPosition:
    """Parse the result of `KafkaPosition.text`.

    Raises:
        PositionLostError: the position belongs to another topic or another kind of source.
    """
    try:
        content = json.loads(text)
        of, offsets = content["topic"], content["offsets"]
        position = KafkaPosition(of, {int(number): int(at) for number, at in offsets.items()})
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise PositionLostError(
            "the stored position of the dataset is not a Kafka position"
        ) from exc
    if of != topic:
        raise PositionLostError(f"the stored rows come from topic '{of}'; reloading")
    return position
