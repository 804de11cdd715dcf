"""Declarations of the providers of rerankers; imports nothing that a reranker needs."""

from caraway_core.loading.declarations import Declaration

_LOCAL = "caraway_plugins.reranking.local"

BUILTIN = Declaration(f"{_LOCAL}:build_builtin", frozenset(), is_local=True)
FILE = Declaration(f"{_LOCAL}:build_file", frozenset({"max_tokens"}), is_local=True)
HUGGINGFACE = Declaration(
    f"{_LOCAL}:build_huggingface",
    frozenset({"max_tokens", "client_timeout", "endpoint", "hf_token", "revision"}),
    is_local=True,
)
COHERE = Declaration(
    "caraway_plugins.reranking.cohere:build",
    frozenset({"client_timeout", "endpoint", "cohere_api_key"}),
)
