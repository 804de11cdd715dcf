"""Requests and answers of chats, independent of any provider."""
