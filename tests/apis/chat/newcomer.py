"""Print how a text field that only a new provider's row names is handled.

Run as a separate process: the row is added to the source of the catalog before anything else is
imported.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

NAME = "abridge.providers.catalog"
ROW = """
    Profile(
        "newcomer",
        reasoning_in=("thoughts", "tags"),
        returns=ReasoningReturn("earlier_thoughts", rejects=("reasoning_content",)),
        source="here",
    ),
)

PROFILES"""


class CatalogLoader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        source = Path(self.path).read_text()
        assert source.count("\n)\n\nPROFILES") == 1
        return compile(source.replace("\n)\n\nPROFILES", ROW), self.path, "exec")


class CatalogFinder:
    @staticmethod
    def find_spec(
        name: str, path: list[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != NAME or path is None:
            return None
        file = str(Path(path[0]) / "catalog.py")
        return importlib.util.spec_from_file_location(name, file, loader=CatalogLoader(name, file))


def text_fields(stream: bytes) -> dict[str, str]:
    """Return the texts that the deltas of a stream add up to."""
    from tests.support.checker import frames

    texts: dict[str, str] = {}
    chunks = [json.loads(data) for _, data in frames(stream) if not data.startswith("[DONE]")]
    for choice in (choice for chunk in chunks for choice in chunk["choices"]):
        for name, text in choice["delta"].items():
            if name != "role" and text:
                texts[name] = texts.get(name, "") + text
    return texts


def main() -> dict[str, Any]:
    from abridge.apis.chat.api import CHAT
    from abridge.apis.chat.history import ChatHistory
    from abridge.memory.route_memory import REASONING_NEEDLES
    from abridge.providers.catalog import PROFILES
    from tests.support.pipeline import chat, translating
    from tests.support.streams import THOUGHT, chat_stream, completion

    stream = b"".join(chat_stream(THOUGHT, "Yes", field="thoughts"))
    whole = json.dumps(completion({"thoughts": THOUGHT, "content": "Yes"})).encode()
    found: dict[str, Any] = {"thought": THOUGHT}
    for name in ("newcomer", "auto"):
        profile = PROFILES[name]
        for expose in ("summary", "both"):
            found[f"{name} {expose}"] = text_fields(
                chat(profile=profile, expose=expose).stream(stream)
            )
        hidden = chat(profile=profile, expose="none")
        found[f"{name} hidden"] = hidden.stream(stream).decode()
        found[f"{name} recorded"] = [turn.original for turn in hidden.recorded_turns()]
        found[f"{name} seen"] = hidden.reader.observed().place
        message = json.loads(chat(profile=profile, expose="summary").whole(whole))
        found[f"{name} whole"] = message["choices"][0]["message"]
    translated = translating("chat", CHAT, profile=PROFILES["newcomer"], expose="raw")
    found["translated"] = text_fields(translated.stream(stream))
    body: dict[str, Any] = {"messages": [{"role": "assistant", "reasoning": THOUGHT}]}
    sent = json.dumps({"role": "assistant", "thoughts": THOUGHT}).encode()
    found["noticed"] = any(needle in sent for needle in REASONING_NEEDLES)
    history = ChatHistory(body)
    found["placed"] = history.place_reasoning(history.turns[0], PROFILES["newcomer"])
    found["replayed"] = dict(history.body()["messages"][0])
    found["read again"] = list(set(history.reasoning_texts(history.turns[0])))
    history.drop_reasoning(history.turns[0])
    found["dropped"] = history.body()["messages"][0]
    return found


if __name__ == "__main__":
    sys.meta_path.insert(0, CatalogFinder)  # type: ignore[arg-type]
    print(json.dumps(main()))  # noqa: T201 -- for the test
