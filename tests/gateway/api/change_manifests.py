"""Manifests of datasets that take changes, with keys of users who may write."""

KEYS = """
        runtime:
          auth: {api-key: {keys: ["writer:rw", "reader:ro"]}}
"""
TAKING = """
        datasets:
          - from: memory:orders
            name: orders
            access: read_write
            columns: [{name: id, type: bigint}, {name: v, type: text}]
            acceleration: {enabled: true}
"""
