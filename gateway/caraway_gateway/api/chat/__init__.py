"""The route `/v1/chat/completions`, to the letter of the OpenAI wire."""
