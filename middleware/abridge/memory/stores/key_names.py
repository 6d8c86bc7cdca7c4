"""Names of the keys of stored values, which the store, its sealing and its backends share."""

from __future__ import annotations

from base64 import urlsafe_b64encode


class KeyNames:
    """Names of keys, for backends whose keys are text: a namespace, a kind, and digests as
    base64url. A sealed value is bound to its name, whatever the backend calls its keys."""

    def __init__(self, namespace: str = "abridge") -> None:
        self._namespace = namespace.encode()

    def original(self, turn_key: bytes, prefix: bytes) -> bytes:
        return self.join(b"o", turn_key, prefix)

    def value(self, key: bytes) -> bytes:
        return self.join(b"v", key)

    def mark(self, mark: bytes) -> bytes:
        return self.join(b"m", mark)

    def join(self, kind: bytes, *digests: bytes) -> bytes:
        """Name a key of any kind, a backend's own included."""
        encoded = (urlsafe_b64encode(digest).rstrip(b"=") for digest in digests)
        return b":".join([self._namespace, kind, *encoded])
