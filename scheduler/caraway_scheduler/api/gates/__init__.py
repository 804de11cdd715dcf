"""What every request passes before its route, and every answer on its way back: plain ASGI.

In order: `observing` (trace id, metrics, log), CORS, `stopping` (503), `access` (keys),
`limiting` (429 and 504), `bounds` (declared body sizes).
"""
