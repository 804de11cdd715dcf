"""Declarations of the providers of embedding models; imports nothing that a model needs."""

from caraway_core.loading.declarations import Declaration

_REMOTE = frozenset(
    {"client_timeout", "dimensions", "max_batch_size", "max_concurrency", "endpoint"}
)
_ONNX = frozenset({"max_tokens", "pooling"})
_HERE = "caraway_plugins.embeddings"

BUILTIN = Declaration(f"{_HERE}.builtin:build", frozenset(), is_local=True)
FILE = Declaration(f"{_HERE}.local_files:build", _ONNX, is_local=True)
HUGGINGFACE = Declaration(
    f"{_HERE}.huggingface:build",
    _ONNX | {"client_timeout", "endpoint", "hf_token", "revision"},
    is_local=True,
)
OPENAI = Declaration(
    f"{_HERE}.openai:build", _REMOTE | {"openai_api_key", "openai_org_id", "openai_project_id"}
)
AZURE = Declaration(
    f"{_HERE}.azure:build", _REMOTE | {"azure_api_key", "azure_api_version", "azure_entra_token"}
)
GOOGLE = Declaration(f"{_HERE}.google:build", _REMOTE | {"google_api_key"})
BEDROCK = Declaration(
    f"{_HERE}.bedrock:build",
    _REMOTE | {"aws_region", "aws_access_key_id", "aws_secret_access_key", "aws_session_token"},
)
