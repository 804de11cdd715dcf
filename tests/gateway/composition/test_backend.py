from dataclasses import replace

from caraway_core.manifest.values.runtime import RuntimeSettings
from caraway_engine.stages import Policy
from caraway_gateway.composition import backend


def test_queries_are_distributed_by_the_sizes_of_the_manifest() -> None:
    settings = RuntimeSettings()
    sizes = replace(
        settings.query.distribution,
        small_table_bytes=1, broadcast_bytes=2, gather_bytes=3, partition_bytes=4,
    )  # fmt: skip
    changed = replace(settings, query=replace(settings.query, distribution=sizes))

    assert backend.policy(changed) == Policy(
        small_table_bytes=1, broadcast_bytes=2, gather_bytes=3, partition_bytes=4
    )
    assert backend.policy(settings) == Policy()
