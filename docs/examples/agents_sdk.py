"""OpenAI's Agents SDK: an agent whose summary streams while it thinks.

pip install openai-agents && python agents_sdk.py
"""

import asyncio

from agents import Agent, ModelSettings, OpenAIResponsesModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI
from openai.types.shared import Reasoning

set_tracing_disabled(disabled=True)  # traces go to OpenAI otherwise

client = AsyncOpenAI(base_url="http://127.0.0.1:8400/v1", api_key="none")
agent = Agent(
    "Anna",
    model=OpenAIResponsesModel("your-model", client),
    model_settings=ModelSettings(reasoning=Reasoning(summary="auto")),
)


async def main() -> None:
    """Ask once, and print the summary and the answer as they arrive."""
    run = Runner.run_streamed(agent, "How many primes are below 100?")
    async for event in run.stream_events():
        if event.type == "raw_response_event":
            data = event.data
            if data.type == "response.reasoning_summary_text.delta":
                print(data.delta, end="", flush=True)
            elif data.type == "response.reasoning_summary_part.done":
                print("\n")
            elif data.type == "response.output_text.delta":
                print(data.delta, end="", flush=True)
    print()


asyncio.run(main())
