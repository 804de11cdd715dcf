"""The settings of all DuckDBs of this process."""

SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": "2",
    "memory_limit": "1GB",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
}
