"""The workers of the manifest that run by themselves: statements and prompts at the times of a
cron.

How a worker chooses between models is in `caraway_assist.models`.
"""
