"""ASGI middleware that every request passes before its route, and every answer on its way back."""
