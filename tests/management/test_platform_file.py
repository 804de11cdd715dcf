from pathlib import Path

import pytest

from caraway_core.errors import CarawayError
from caraway_management import platform_file
from caraway_management.domain.platform import Cluster, Image, Platform, Region

TEXT = """
regions:
  - {name: us-east-1, provider: aws, providerName: AWS, isDefault: true, cname: us-east-1-prod}
  - {name: us-west-2, disabled: true, env: dev, nodeSelector: {topology.kubernetes.io/region: usw2}}
clusters:
  - {cluster_name: big, region: us-east-1, endpoint: https://big.example.com, organizations: [acme]}
  - {cluster_name: old, region: us-east-1, deployable: false}
images:
  - {name: caraway/caraway, tag: 1.2.3}
git: ["https://github.com/", "file:///srv/git/"]
"""


def test_a_file_says_what_an_installation_offers(tmp_path: Path) -> None:
    (tmp_path / "platform.yaml").write_text(TEXT)
    found = platform_file.read(tmp_path / "platform.yaml")
    assert found == Platform(
        (
            Region("us-east-1", "us-east-1", "aws", "AWS", "us-east-1-prod", True),
            Region(
                "us-west-2",
                "us-west-2",
                is_disabled=True,
                env="dev",
                node_selector={"topology.kubernetes.io/region": "usw2"},
            ),
        ),
        (
            Cluster("big", "us-east-1", "", "https://big.example.com", organizations=("acme",)),
            Cluster("old", "us-east-1", is_deployable=False),
        ),
        (Image("caraway/caraway", "1.2.3"),),
        ("https://github.com/", "file:///srv/git/"),
    )


def test_what_a_file_leaves_out_is_the_default(tmp_path: Path) -> None:
    (tmp_path / "platform.yaml").write_text("")
    assert platform_file.read(tmp_path / "platform.yaml") == Platform()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("regions: 7", "regions"),
        ("region: []", "region"),
        ("clusters: [{cluster_name: a}]", "clusters.0.region"),
        ("regions: [{name: a, nodeSelector: [b]}]", "regions.0.nodeSelector"),
        ("clusters: [{cluster_name: a, region: b, nodeSelector: {c: 1}}]", "nodeSelector.c"),
        ("images: [{name: a, tag: b, channel: c}]", "images.0.channel"),
        ("git: ['ftp://a/']", "git.0"),
        ("git: ['https://github.com']", "git.0"),
        ("a: [", "is not YAML"),
        ("- a", "platform.yaml"),
        ("[" * 100_000, "is not YAML"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "platform.yaml").write_text(text)
    with pytest.raises(CarawayError, match=words):
        platform_file.read(tmp_path / "platform.yaml")
    with pytest.raises(CarawayError, match="No such file"):
        platform_file.read(tmp_path / "none.yaml")
