"""The table of a dataset that consumes a topic, before its first change."""

from caraway_core.protocols.change_sources import ChangeRequest
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import MemoryTable
from caraway_plugins.changes.kafka.source import KafkaChanges
from caraway_plugins.changes.pushed import without_rows


class KafkaTable:
    """A source without rows, which validates the dataset's settings without contacting Kafka."""

    capabilities = SourceCapabilities(scan=False, changes=True)

    def resolve(self, request: SourceRequest) -> MemoryTable:
        KafkaChanges(
            ChangeRequest(
                request.name, request.connector, request.path, request.params, request.declared
            )
        )
        return without_rows(request.name, request.declared)

    def fingerprint(self, request: SourceRequest) -> str | None:
        return None
