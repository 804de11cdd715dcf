"""Models of a Hugging Face hub, or of a mirror with the same API."""

import os
import re
import tempfile
from pathlib import Path

from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.protocols.embedding import Embedder, EmbedderSpec
from caraway_plugins.embeddings import local_files
from caraway_plugins.embeddings.params import EmbedderParams, ParamReader

_HOST = "huggingface.co/"
_NAME = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)(?::(?P<revision>[\w./-]+))?")
_TIMEOUT_S = 30.0
_FALLBACK = "caraway-huggingface"


def build(spec: EmbedderSpec) -> Embedder:
    """Download the ONNX file and the tokenizer of a model, unless they are cached, and load them.

    Raises:
        ModelError: there is no such model, access is denied, or the hub does not respond.
    """
    params = EmbedderParams(spec)
    return local_files.load(spec, params, *found(spec.model, params))


def found(model: str, params: ParamReader) -> tuple[Path, Path]:
    """Return the ONNX file and the tokenizer of a model, which are downloaded unless cached.

    Raises:
        ModelError: there is no such model, access is denied, or the hub does not respond.
    """
    match = _NAME.fullmatch(model.removeprefix("//").removeprefix(_HOST))
    if match is None:
        raise ModelError(
            f"{params.title}: '{model}' is no model of a hub; write "
            "'huggingface:huggingface.co/<organisation>/<model>'",
            "invalid",
        )
    hub = _Hub(params, match["repository"], params.text("revision") or match["revision"])
    # Versions are kept by the vectors that a model gives: it does not change while it is cached.
    if (files := hub.files(is_cached=True) or hub.files(is_cached=False)) is not None:
        return files
    raise ModelError(
        f"{params.title}: '{match['repository']}' has no {local_files.TOKENIZER} "
        f"with {local_files.MODEL_NAMES[0]} or {local_files.MODEL_NAMES[1]}; choose a model that "
        "is exported to ONNX",
        "not_found",
    )


class _Hub:
    """The files of one revision of one model."""

    def __init__(self, params: ParamReader, repository: str, revision: str | None) -> None:
        self._title = params.title
        self._repository = repository
        self._revision = revision
        self._endpoint = params.url("endpoint") if params.text("endpoint") else None
        # Without one of its own, a model must not be asked for with the token of another user.
        self._token = params.text("hf_token") or False
        self._timeout_s = params.seconds("client_timeout", _TIMEOUT_S)

    def files(self, is_cached: bool) -> tuple[Path, Path] | None:
        """Return the local copies of the model and of its tokenizer; None if it lacks one.

        Raises:
            ModelError: access is denied, there is no such model, or the hub does not respond.
        """
        if (tokenizer := self._file(local_files.TOKENIZER, is_cached)) is None:
            return None
        found = (self._file(name, is_cached) for name in local_files.MODEL_NAMES)
        model = next((each for each in found if each is not None), None)
        return None if model is None else (model, tokenizer)

    def _file(self, name: str, is_cached: bool) -> Path | None:
        from huggingface_hub import errors

        try:
            return self._download(name, is_cached)
        except errors.LocalEntryNotFoundError as exc:
            if is_cached:
                return None
            raise self._away() from exc
        except errors.EntryNotFoundError:
            return None
        except errors.GatedRepoError as exc:
            raise self._denied() from exc
        except errors.RevisionNotFoundError as exc:
            raise ModelError(
                f"{self._title}: '{self._repository}' has no revision '{self._revision}'",
                "not_found",
            ) from exc
        except errors.RepositoryNotFoundError as exc:
            raise ModelError(
                f"{self._title}: the hub has no model '{self._repository}', or it is private; "
                "check the name and the param 'hf_token'",
                "not_found",
            ) from exc
        except errors.HfHubHTTPError as exc:
            status = getattr(exc.response, "status_code", 0)
            if status in (401, 403):
                raise self._denied() from exc
            raise self._away() from exc
        except errors.HFValidationError as exc:
            raise ModelError(
                f"{self._title}: its repository has a name that no hub has: {exc}", "invalid"
            ) from exc
        except OSError as exc:
            raise ModelError(
                f"{self._title}: the file '{name}' cannot be kept: {type(exc).__name__}"
            ) from exc

    def _download(self, name: str, is_cached: bool) -> Path:
        import huggingface_hub

        path = huggingface_hub.hf_hub_download(
            self._repository,
            name,
            revision=self._revision,
            endpoint=self._endpoint,
            token=self._token,
            etag_timeout=self._timeout_s,
            cache_dir=_cache(),
            local_files_only=is_cached,
        )
        return Path(path)

    def _away(self) -> ModelAwayError:
        return ModelAwayError(f"{self._title}: the hub does not respond", retry_after_s=10)

    def _denied(self) -> ModelError:
        return ModelError(
            f"{self._title}: the hub denies access to '{self._repository}'; accept its terms "
            "and check the param 'hf_token'",
            "auth",
        )


def _cache() -> Path | None:
    """Return None for the cache of the hub's client; another folder if that is not writable."""
    from huggingface_hub import constants

    usual = Path(constants.HF_HUB_CACHE)
    try:
        usual.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.gettempdir()) / _FALLBACK
    return None if os.access(usual, os.W_OK) else Path(tempfile.gettempdir()) / _FALLBACK
