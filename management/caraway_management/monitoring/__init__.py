"""Monitors and reactions of projects: judged in the background, with notices of what happens."""
