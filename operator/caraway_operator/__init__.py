"""The Kubernetes operator of Caraway: custom resources, the objects made from them, the controller.

Imports core only. Only handlers/ and operating.py import kopf.
"""
