"""Model providers, tools, prompts and text-to-SQL; it knows neither HTTP routes nor Ray."""
