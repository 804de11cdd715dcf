"""Secret stores, one module each: where `${store:NAME}` gets its value from.

Each class is made with (params, base_dir, environ) and has `get(name)`. No error may hold a value.
"""
