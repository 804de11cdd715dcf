from collections.abc import Iterator

import pytest
from sqlalchemy.engine import URL

from caraway_management.domain.platform import Cluster, Image, Platform, Region
from tests.kit import management
from tests.kit.deployed_projects import new_project
from tests.kit.management import BEGAN, Installation

PLATFORM = Platform(
    regions=(
        Region(
            "east", "us-east-1", "aws", "AWS", "us-east-1-prod", True,
            node_selector={"region": "east", "pool": "shared"},
        ),
        Region("lab", "lab", is_disabled=True, env="dev"),
    ),
    clusters=(
        Cluster(
            "big", "east", "aws", "https://big.example.com", created_at=BEGAN,
            node_selector={"pool": "big"},
        ),
        Cluster("own", "east", organizations=("Umbrella",)),
    ),
    images=(
        Image("caraway/caraway", "2.1.0"),
        Image("caraway/caraway", "2.2.0-rc.1", "preview"),
    ),
)  # fmt: skip


@pytest.fixture
def installation(prepared_url: URL) -> Iterator[Installation]:
    """An installation that offers regions, clusters and images."""
    with management.installation(prepared_url, is_prepared=True, platform=PLATFORM) as made:
        yield made


def test_regions_clusters_and_images_are_listed(installation: Installation) -> None:
    user = installation.add_user()
    installation.add_org("acme", user)
    installation.add_org("umbrella", user)
    caller = installation.sign_in(user)
    regions = caller.get("/v1/regions").json()
    assert regions["default"] == "east"
    assert regions["regions"][0] == {
        "name": "east", "region": "us-east-1", "provider": "aws", "providerName": "AWS",
        "isDefault": True, "cname": "us-east-1-prod", "disabled": False,
    }  # fmt: skip
    lab = caller.get("/v1/regions?env=dev").json()
    assert ([each["name"] for each in lab["regions"]], lab["default"]) == (["lab"], None)
    clusters = caller.get("/v1/clusters").json()["clusters"]
    assert clusters == [
        {
            "cluster_name": "big", "region": "east", "cloud_provider": "aws",
            "endpoint": "https://big.example.com", "created_at": BEGAN.isoformat(),
            "updated_at": None,
        }
    ]  # fmt: skip
    others = caller.get("/v1/clusters", headers={"x-org-name": "umbrella"}).json()["clusters"]
    assert [each["cluster_name"] for each in others] == ["big", "own"]
    images = caller.get("/v1/container-images").json()
    assert ([each["tag"] for each in images["images"]], images["default"]) == (
        ["2.1.0", "2.2.0-rc.1"], "2.1.0",
    )  # fmt: skip
    preview = caller.get("/v1/container-images?channel=preview").json()
    assert preview == {
        "images": [{"name": "caraway/caraway", "tag": "2.2.0-rc.1", "channel": "preview"}],
        "default": "2.2.0-rc.1",
    }
    assert caller.get("/v1/container-images?channel=x").status_code == 400


def test_a_region_is_named_by_its_cname_too(installation: Installation) -> None:
    user = installation.add_user()
    installation.add_org("acme", user)
    caller = installation.sign_in(user)
    made = caller.post("/v1/projects", {"name": "shop", "cname": "us-east-1-prod"})
    assert (made.status_code, made.json()["region"]) == (201, "east")
    assert caller.post("/v1/projects", {"name": "new1", "cname": "x"}).status_code == 400


def test_a_deployment_has_the_image_of_its_channel_and_version(installation: Installation) -> None:
    project = new_project(installation)

    def deployed(**settings: object) -> object:
        changed = project.caller.put(project.path, settings)
        assert changed.status_code == 200, changed.text
        answer = project.caller.post(f"{project.path}/deployments", {})
        installation.work()
        return answer.json().get("image_tag") or (answer.status_code, answer.json()["code"])

    unknown = (400, "unknown_image_tag")
    assert deployed() == "2.1.0"
    assert installation.deployer.running[project.id].config["image_tag"] == "2.1.0"
    assert deployed(update_channel="preview") == "2.2.0-rc.1"
    assert deployed(version="2.2") == "2.2.0-rc.1"
    assert deployed(version="2.1.x") == unknown
    assert deployed(update_channel="stable") == "2.1.0"
    assert deployed(version="3.x") == unknown
    assert deployed(version=None, update_channel="nightly") == unknown
    # A tag that is named is taken as it is, and the deployed tag does not become a setting.
    assert deployed(image_tag="2.2.0-rc.1") == "2.2.0-rc.1"
    assert deployed(image_tag=None, update_channel=None) == "2.1.0"
    assert project.caller.get(project.path).json()["config"]["image_tag"] is None
    project.caller.post(f"{project.path}/pause")
    resumed = project.caller.post(f"{project.path}/resume").json()["deployment_id"]
    assert project.deployment(resumed)["image_tag"] == "2.1.0"


def test_region_and_cluster_say_which_nodes_run_a_project(installation: Installation) -> None:
    project = new_project(installation)

    def labels(**settings: object) -> object:
        assert project.caller.put(project.path, settings).status_code == 200
        project.caller.post(f"{project.path}/deployments", {})
        installation.work()
        return installation.deployer.running[project.id].config.get("node_selector")

    assert labels() is None
    assert labels(region="east") == {"region": "east", "pool": "shared"}
    assert labels(region=None, cluster_name="big") == {"region": "east", "pool": "big"}
    forged = project.caller.put(project.path, {"node_selector": {"pool": "mine"}})
    assert forged.status_code == 400
