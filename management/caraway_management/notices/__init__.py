"""Sends notices: by e-mail, to Slack, and to webhooks. Nothing is sent inside unless allowed."""
