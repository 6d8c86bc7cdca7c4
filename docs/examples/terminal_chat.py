"""A chat in the terminal: the summary in grey while the model thinks, then the answer.

pip install openai && python terminal_chat.py
"""

import sys

from openai import OpenAI

GREY, PLAIN = ("\033[90m", "\033[0m") if sys.stdout.isatty() else ("", "")

client = OpenAI(base_url="http://127.0.0.1:8400/v1", api_key="none")


def answer(question: str, previous: str | None) -> str:
    """Print the summary and the answer as they arrive; return the response's id."""
    with client.responses.stream(
        model="your-model",
        input=question,
        previous_response_id=previous,
        reasoning={"summary": "auto"},
    ) as stream:
        for event in stream:
            if event.type == "response.reasoning_summary_text.delta":
                print(f"{GREY}{event.delta}{PLAIN}", end="", flush=True)
            elif event.type == "response.reasoning_summary_part.done":
                print("\n")
            elif event.type == "response.output_text.delta":
                print(event.delta, end="", flush=True)
        print()
        return stream.get_final_response().id


previous = None
try:
    while True:
        previous = answer(input("> "), previous)
except (EOFError, KeyboardInterrupt):
    print()
