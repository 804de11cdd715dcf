"""The routes of `/v1/responses`, to the letter of the OpenAI wire, over every provider."""
