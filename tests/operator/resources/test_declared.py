from typing import Any

from caraway_operator.resources import declared
from caraway_operator.resources.cluster import ClusterSpec
from tests.operator.manifests.clusters import spec

FROM: dict[str, Any] = {"manifestFrom": {"configMap": {"name": "shop", "key": "app.yaml"}}}


def referring(**sections: Any) -> ClusterSpec:
    return ClusterSpec.model_validate({**FROM, **sections})


def problems(checked: declared.Checked) -> list[str]:
    assert checked.declared is None
    return [str(problem) for problem in checked.problems]


def test_the_manifest_of_the_resource_is_told_of_by_path() -> None:
    manifest = {"name": "app", "datasets": [{"from": "s3://b/a/"}], "runtime": {"jobs": {"x": 1}}}
    assert problems(declared.inline(spec(manifest))) == [
        "spec.manifest.datasets[0].name: the key 'name' is missing",
        "spec.manifest.runtime.jobs.x: unknown key 'x'; known: max_concurrent, max_queued, "
        "retention",
    ]


def test_that_of_a_config_map_is_told_of_by_line() -> None:
    text = "name: app\nruntime:\n  jobs:\n    max_queue: 3\n"
    assert problems(declared.from_config_map(referring(), text)) == [
        "ConfigMap shop/app.yaml:4 runtime.jobs.max_queue: unknown key 'max_queue'; did you mean "
        "'max_queued'?"
    ]


def test_text_that_is_no_yaml() -> None:
    [problem] = problems(declared.from_config_map(referring(), "name: [app"))
    assert problem.startswith("ConfigMap shop/app.yaml:2: is not valid YAML")


def test_a_config_map_that_is_not_there() -> None:
    assert problems(declared.from_config_map(referring(), None)) == [
        "spec.manifestFrom.configMap: there is no ConfigMap 'shop' with the key 'app.yaml'; "
        "create it"
    ]


def test_the_operator_reads_no_file_that_a_manifest_names() -> None:
    text = "name: app\ndatasets:\n  - ref: /etc/passwd\n"
    [problem] = problems(declared.from_config_map(referring(), text))
    assert problem.startswith("ConfigMap shop/app.yaml:3 datasets[0].ref: ")


def test_numbers_stay_as_they_were_written() -> None:
    checked = declared.from_config_map(referring(), "name: 007\n")
    assert checked.declared is not None
    assert checked.declared.content["name"].text == "007"


def test_how_long_the_runtime_takes_to_stop() -> None:
    checked = declared.inline(spec({"name": "app", "runtime": {"shutdown_timeout": "2m"}}))
    assert checked.declared is not None and checked.declared.shutdown_timeout_s == 120


def test_what_is_said_both_in_the_manifest_and_in_the_resource() -> None:
    manifest = {
        "name": "app",
        "runtime": {
            "auth": {"api-key": {"enabled": False}},
            "tls": {"certificate_file": "a", "key_file": "b"},
            "scheduler": {"state_location": "s3://bucket/a"},
        },
        "secrets": [{"from": "env", "name": "vault"}, {"from": "env", "name": "caraway_api_keys"}],
    }
    found = problems(
        declared.inline(
            spec(
                manifest,
                auth={"apiKeys": [{"name": "keys", "key": "a"}]},
                tls={"enabled": True},
                resultStore={"url": "s3://bucket/b"},
                secrets=[{"name": "vault", "secretName": "v"}],
            )
        )
    )
    assert [problem.partition(":")[0] for problem in found] == [
        "spec.tls",
        "spec.resultStore",
        "spec.auth.apiKeys",
        "spec.secrets[0].name",
        "spec.manifest.secrets",
    ]
