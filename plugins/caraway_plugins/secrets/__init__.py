"""Secret stores, which provide the values of `${store:NAME}`, one module each.

Each class is created with (params, base_dir, environ) and has `get(name)`. Errors never contain
values.
"""
