"""The params of datasets over APIs; imports nothing that a source needs."""

PAGES = frozenset(
    "json_pointer unnest_depth filter_params pagination pagination_data_pointer "
    "pagination_link_header pagination_next_pointer pagination_token_param "
    "pagination_offset_param pagination_page_param pagination_first_page pagination_size_param "
    "pagination_page_size pagination_max_pages pagination_query_params".split()
)
"""Params that only an API has: with one of them, an address is that of an API."""
LIMITS = frozenset(
    "client_timeout connect_timeout max_retries retry_max_duration requests_per_second_limit "
    "requests_per_minute_limit".split()
)
DYNAMIC = frozenset(
    "allowed_request_paths request_query_filters request_body_filters "
    "request_header_filters".split()
)
"""Params of the peer for requests that statements make up; they are refused with the reason."""
