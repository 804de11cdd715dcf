"""The Kubernetes operator of Caraway: the objects made from custom resources, the controller.

Imports kube and core only. Only handlers/ and operating.py import kopf.
"""
