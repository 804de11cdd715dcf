"""The route of `/v1/messages`, in the shapes of Anthropic's wire, over every provider."""
