"""LangChain: the summary arrives in reasoning blocks, before the answer's text.

pip install langchain-openai && python langchain_chat.py
"""

from langchain_openai import ChatOpenAI
from pydantic import SecretStr

model = ChatOpenAI(
    model="your-model",
    base_url="http://127.0.0.1:8400/v1",
    api_key=SecretStr("none"),
    use_responses_api=True,
    reasoning={"summary": "auto"},
)

last = None
for message in model.stream("How many primes are below 100?"):
    for block in message.content_blocks:
        if block.get("index") != last:  # the next part of the summary, or the answer
            last = block.get("index")
            print("\n" if last else "")
        if block["type"] == "reasoning":
            print(block.get("reasoning", ""), end="", flush=True)
        elif block["type"] == "text":
            print(block["text"], end="", flush=True)
print()
