from caraway_core.manifest import schema
from tests.kit.management import Installation


def test_editors_read_the_schema_of_manifests_without_a_credential(
    installation: Installation,
) -> None:
    found = installation.client.get("/v1/docs/manifest.schema.json")
    assert found.headers["content-type"] == "application/schema+json"
    assert found.json() == schema.json_schema()
