"""The messages API over any chat model: requests become chats, and answers become messages."""
