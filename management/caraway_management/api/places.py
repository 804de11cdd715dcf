"""The offer of an installation: regions, clusters and images of the runtime."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from caraway_management.api.access import Caller, needs

router = APIRouter(tags=["places"])


@router.get("/v1/regions")
async def list_regions(
    caller: Annotated[Caller, needs("apps:read")],
    env: Annotated[str | None, Query(max_length=63, description="Only those of it.")] = None,
) -> dict[str, object]:
    """List the regions, and the default one."""
    regions = [each for each in caller.services.platform.regions if env in (None, each.env)]
    return {
        "regions": [
            {
                "name": each.name,
                "region": each.region,
                "provider": each.provider,
                "providerName": each.provider_name,
                "isDefault": each.is_default,
                "cname": each.cname,
                "disabled": each.is_disabled,
            }
            for each in regions
        ],
        "default": next((each.name for each in regions if each.is_default), None),
    }


@router.get("/v1/clusters")
async def list_clusters(caller: Annotated[Caller, needs("apps:read")]) -> dict[str, object]:
    """List the clusters that the organization may use."""
    return {
        "clusters": [
            {
                "cluster_name": each.name,
                "region": each.region,
                "cloud_provider": each.cloud_provider,
                "endpoint": each.endpoint,
                "created_at": each.created_at.isoformat() if each.created_at else None,
                "updated_at": each.updated_at.isoformat() if each.updated_at else None,
            }
            for each in caller.services.platform.clusters_of(caller.org.name)
        ]
    }


@router.get("/v1/container-images")
async def list_container_images(
    caller: Annotated[Caller, needs("apps:read")],
    channel: Annotated[Literal["stable", "preview", "nightly", "internal"] | None, Query()] = None,
) -> dict[str, object]:
    """List the images of the runtime; the newest of a channel, and the default one, come first."""
    images = [each for each in caller.services.platform.images if channel in (None, each.channel)]
    return {
        "images": [
            {"name": each.name, "tag": each.tag, "channel": each.channel} for each in images
        ],
        "default": images[0].tag if images else None,
    }
