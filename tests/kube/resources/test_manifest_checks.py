from typing import Any

from caraway_kube.resources import manifest_checks, yaml_text
from caraway_kube.resources.cluster import CarawayClusterSpec
from tests.operator.manifests.clusters import spec

FROM: dict[str, Any] = {"manifestFrom": {"configMap": {"name": "shop", "key": "app.yaml"}}}


def referring(**sections: Any) -> CarawayClusterSpec:
    return CarawayClusterSpec.model_validate({**FROM, **sections})


def problems(checked: manifest_checks.CheckedManifest) -> list[str]:
    assert checked.manifest is None
    return [str(problem) for problem in checked.problems]


def test_problems_of_an_inline_manifest_have_a_path() -> None:
    manifest = {"name": "app", "datasets": [{"from": "s3://b/a/"}], "runtime": {"jobs": {"x": 1}}}
    assert problems(manifest_checks.check_inline(spec(manifest))) == [
        "spec.manifest.datasets[0].name: the key 'name' is missing",
        "spec.manifest.runtime.jobs.x: unknown key 'x'; known: max_concurrent, max_queued, "
        "retention",
    ]


def test_problems_of_a_config_map_have_a_line() -> None:
    text = "name: app\nruntime:\n  jobs:\n    max_queue: 3\n"
    assert problems(manifest_checks.check_config_map(referring(), text)) == [
        "ConfigMap shop/app.yaml:4 runtime.jobs.max_queue: unknown key 'max_queue'; did you mean "
        "'max_queued'?"
    ]


def test_searches_of_views_are_checked() -> None:
    views = [{"name": "hits", "sql": "SELECT * FROM text_search(dosc, 'x')"}]
    manifest = {"name": "app", "datasets": [{"from": "s3://b/a/", "name": "docs"}], "views": views}
    message = "line 1, column 15: text_search: no dataset or view 'dosc'; did you mean 'docs'?"
    (problem,) = problems(manifest_checks.check_inline(spec(manifest)))
    assert problem.startswith(f"spec.manifest.views: view 'hits': {message}")
    text = yaml_text.dump(manifest)
    (problem,) = problems(manifest_checks.check_config_map(referring(), text))
    assert problem.startswith(f"ConfigMap shop/app.yaml:5 views: view 'hits': {message}")


def test_text_that_is_not_yaml() -> None:
    [problem] = problems(manifest_checks.check_config_map(referring(), "name: [app"))
    assert problem.startswith("ConfigMap shop/app.yaml:2: is not valid YAML")


def test_a_missing_config_map() -> None:
    assert problems(manifest_checks.check_config_map(referring(), None)) == [
        "spec.manifestFrom.configMap: the ConfigMap 'shop' with the key 'app.yaml' does not exist; "
        "create it"
    ]


def test_the_operator_reads_no_files_that_a_manifest_refers_to() -> None:
    text = "name: app\ndatasets:\n  - ref: /etc/passwd\n"
    [problem] = problems(manifest_checks.check_config_map(referring(), text))
    assert problem.startswith("ConfigMap shop/app.yaml:3 datasets[0].ref: ")


def test_numbers_keep_their_notation() -> None:
    checked = manifest_checks.check_config_map(referring(), "name: 007\n")
    assert checked.manifest is not None
    assert checked.manifest.content["name"].text == "007"


def test_the_shutdown_timeout_is_read() -> None:
    checked = manifest_checks.check_inline(
        spec({"name": "app", "runtime": {"shutdown_timeout": "2m"}})
    )
    assert checked.manifest is not None and checked.manifest.shutdown_timeout_s == 120


def test_settings_in_both_manifest_and_resource_are_conflicts() -> None:
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
        manifest_checks.check_inline(
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
