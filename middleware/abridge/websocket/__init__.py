"""The Responses API over WebSocket: each message is answered as the HTTP request it stands for."""
