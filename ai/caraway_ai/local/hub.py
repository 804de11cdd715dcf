"""GGUF models of a Hugging Face hub, downloaded once and then run as local files."""

import io
import json
import re
from pathlib import Path
from typing import Any

from caraway_ai.local.model import LocalModel, Tell
from caraway_ai.protocols import ChatModel
from caraway_ai.providers.params import ModelParams
from caraway_ai.specs import ModelSpec
from caraway_core.errors import ModelAwayError, ModelError

_HOST = "huggingface.co/"
_NAME = re.compile(
    r"(?P<repository>[\w.-]+/[\w.-]+)(?::(?P<revision>[\w.-]+))?(?:/(?P<file>[\w./-]+\.gguf))?"
)
_PREFERRED = ("q4_k_m", "q4_k_s", "q4_0", "q4_1", "q5_k_m", "q8_0")


def build(spec: ModelSpec) -> ChatModel:
    """Build a model of the hub; its file is downloaded when it is loaded first."""
    params = ModelParams(spec)
    match = _NAME.fullmatch(spec.model.removeprefix(_HOST))
    if match is None:
        raise params.wrong(
            f"'{spec.model}' is no model of a hub; write "
            "'huggingface:huggingface.co/<organisation>/<model>[:<revision>][/<file>.gguf]'"
        )
    hub = HubModel(spec, params, match["repository"], match["revision"])
    name = match["file"] or spec.weights
    return LocalModel(spec, params, lambda tell: hub.download(name, tell))


def _bar(tell: Tell) -> type[object]:
    """Return a class of progress bars that print nothing and report their progress."""
    from tqdm import tqdm  # type: ignore[import-untyped]  # the client of the hub needs it

    class ToldBar(tqdm):  # type: ignore[misc]  # it has no types
        def __init__(self, *args: object, **options: object) -> None:
            # Only its own kind of bar knows the name of a group.
            options.pop("name", None)
            super().__init__(*args, **{**options, "disable": False, "file": io.StringIO()})

        def update(self, n: float | None = 1) -> bool | None:
            shown: bool | None = super().update(n)
            whole = f" of {int(self.total) >> 20}" if self.total else ""
            tell(f"downloading: {int(self.n) >> 20}{whole} MiB")
            return shown

    return ToldBar


class HubModel:
    """One repository of a hub. Its methods block."""

    def __init__(
        self, spec: ModelSpec, params: ModelParams, repository: str, revision: str | None
    ) -> None:
        self._spec = spec
        self._repository = repository
        self._revision = revision
        self._endpoint = params.text("endpoint")
        # Without one of its own, a model must not be requested with the token of another user.
        self._token = params.text("hf_token") or False

    def download(self, name: str | None, tell: Tell = lambda _progress: None) -> Path:
        """Return the local copy of a file; without a name, of the one that fits best.

        `tell` is called with what has been downloaded.

        Raises:
            ModelError: there is no such file, access is denied, or the hub does not respond.
        """
        try:
            import huggingface_hub
            from huggingface_hub import errors
        except ModuleNotFoundError as exc:
            raise self._error(
                "it needs the package 'huggingface-hub'; install it with: pip install "
                "'caraway[huggingface]'",
                "invalid",
            ) from exc
        try:
            name = name or self._choose(huggingface_hub)
            return Path(
                huggingface_hub.hf_hub_download(
                    self._repository,
                    name,
                    revision=self._revision,
                    endpoint=self._endpoint,
                    token=self._token,
                    cache_dir=self._spec.cache_dir / "hub",
                    tqdm_class=_bar(tell),
                )
            )
        except errors.LocalEntryNotFoundError as exc:
            raise self._away() from exc
        except errors.GatedRepoError as exc:
            raise self._denied() from exc
        except errors.EntryNotFoundError as exc:
            raise self._error(f"'{self._repository}' has no file '{name}'", "not_found") from exc
        except errors.RevisionNotFoundError as exc:
            message = f"'{self._repository}' has no revision '{self._revision}'"
            raise self._error(message, "not_found") from exc
        except errors.RepositoryNotFoundError as exc:
            raise self._error(
                f"the hub has no model '{self._repository}', or it is private; check the name and "
                "the param 'hf_token'",
                "not_found",
            ) from exc
        except errors.HfHubHTTPError as exc:
            if getattr(exc.response, "status_code", 0) in (401, 403):
                raise self._denied() from exc
            raise self._away() from exc
        except json.JSONDecodeError as exc:
            raise self._error("the hub sent what is not JSON; try again", "failed") from exc
        except ValueError as exc:
            # Of its client, which knows what a repository and a file may be called.
            message = f"its repository or file has a name that no hub has: {exc}"
            raise self._error(message, "invalid") from exc
        except OSError as exc:
            reason = exc.strerror or type(exc).__name__
            raise self._error(f"its file cannot be kept: {reason}", "failed") from exc

    def _choose(self, huggingface_hub: Any) -> str:
        api = huggingface_hub.HfApi(endpoint=self._endpoint, token=self._token)
        files: list[str] = api.list_repo_files(self._repository, revision=self._revision)
        found = sorted(name for name in files if name.endswith(".gguf") and "-of-" not in name)
        if not found:
            raise self._error(
                f"'{self._repository}' has no GGUF file; choose a repository with one, whose name "
                "usually ends in -GGUF",
                "not_found",
            )
        for kind in _PREFERRED:
            for name in found:
                if kind in name.lower():
                    return name
        return found[0]

    def _error(self, message: str, type_: str) -> ModelError:
        return ModelError(f"model '{self._spec.name}': {message}", type_)  # type: ignore[arg-type] # one of its types

    def _denied(self) -> ModelError:
        return self._error(
            f"the hub denies access to '{self._repository}'; accept its terms and check the param "
            "'hf_token'",
            "auth",
        )

    def _away(self) -> ModelAwayError:
        message = f"model '{self._spec.name}': the hub does not respond"
        return ModelAwayError(message, retry_after_s=10)
