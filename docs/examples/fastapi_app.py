"""A FastAPI app with authentication and a summarizer of its own.

Users with a token reach a model server through it; the summaries are written by code of the app.

pip install fastapi && uvicorn fastapi_app:app --port 8400
"""

import re
from collections.abc import AsyncIterator

import httpx
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.authentication import (
    AuthCredentials,
    AuthenticationBackend,
    AuthenticationError,
    SimpleUser,
)
from starlette.background import BackgroundTask
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection

from abridge import AbridgeMiddleware, Settings
from abridge.summarizers import Passage

USERS = {"token-of-anna": "anna"}  # in place of your own way to know users
DECIDES = re.compile(r"(So|Therefore|Instead|Thus|That leaves)\b")


class BearerToken(AuthenticationBackend):
    """Knows a user by a token."""

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, SimpleUser]:
        token = conn.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in USERS:
            raise AuthenticationError("This token is not known.")
        return AuthCredentials(["authenticated"]), SimpleUser(USERS[token])


def refuse(_: HTTPConnection, error: AuthenticationError) -> JSONResponse:
    return JSONResponse({"error": {"message": str(error)}}, status_code=401)


class Decisions:
    """Shows of each passage only the sentences in which the model decides something."""

    name = "decisions"

    async def summarize(self, passage: Passage) -> AsyncIterator[str]:
        sentences = re.split(r"(?<=[.?!])\s+", passage.text)
        decisions = [each for each in sentences if DECIDES.match(each)]
        yield "**Coming to a decision**\n\n" if decisions else "**Weighing it up**\n\n"
        yield " ".join(decisions) or "Nothing is decided yet."


app = FastAPI()
app.add_middleware(
    AbridgeMiddleware,
    settings=Settings(summary={"default": "auto"}, summarizer={"kind": "object"}),
    summarizer=Decisions(),
    tenant=lambda scope: scope["user"].username,
)
app.add_middleware(  # the one added last is the outermost
    AuthenticationMiddleware, backend=BearerToken(), on_error=refuse
)

model = httpx.AsyncClient(base_url="http://127.0.0.1:8000/v1", timeout=600)


@app.post("/v1/chat/completions")
async def chat(request: Request) -> StreamingResponse:
    """Pass the request on to the model server, and its answer back."""
    headers = {"content-type": "application/json"}
    body = await request.body()
    sent = model.build_request("POST", "chat/completions", content=body, headers=headers)
    answer = await model.send(sent, stream=True)
    return StreamingResponse(
        answer.aiter_bytes(),
        answer.status_code,
        media_type=answer.headers["content-type"],
        background=BackgroundTask(answer.aclose),
    )
