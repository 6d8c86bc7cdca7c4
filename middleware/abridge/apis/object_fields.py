"""Which fields of requests name objects that an upstream stores for an account, and which do not.

A field that no table has is judged by its name and its value: see `object_references.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

EVERYTHING = "/"
"""The path of objects of which it is not known where the API lists them."""

RESPONSES_PATH = "/v1/responses"

OBJECT_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "file_id": "/v1/files",
        "file_ids": "/v1/files",
        "vector_store_id": "/v1/vector_stores",
        "vector_store_ids": "/v1/vector_stores",
        "container": "/v1/containers",
        "container_id": "/v1/containers",
        "conversation": "/v1/conversations",
        "conversation_id": "/v1/conversations",
        "prompt": "/v1/prompts",
        "prompt_id": "/v1/prompts",
        "assistant_id": "/v1/assistants",
        "thread_id": "/v1/threads",
        "cached_content": "/v1beta/cachedContents",
        "skill_id": "/v1/skills",
        "user_profile_id": "/v1/user_profiles",
        "workspace_id": "/v1/workspaces",
        "tunnel_id": "/v1/tunnels",
    }
)
"""Fields that name an object, by its id or an object with its id, and the path at which the API
lists such objects."""

ID_PREFIXES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("resp_", "msg_", "rs_", "fc_", "cmp_"), RESPONSES_PATH),
        "chatcmpl-": "/v1/chat/completions",
        **dict.fromkeys(("file-", "file_", "upload_"), "/v1/files"),
        "batch_": "/v1/batches",
        "msgbatch_": "/v1/messages/batches",
        "vs_": "/v1/vector_stores",
        **dict.fromkeys(("cntr_", "container_"), "/v1/containers"),
        "conv_": "/v1/conversations",
        "pmpt_": "/v1/prompts",
        "asst_": "/v1/assistants",
        "thread_": "/v1/threads",
        "skill_": "/v1/skills",
        "tunnel_": "/v1/tunnels",
        "voice_": "/v1/audio/voices",
        "files/": "/v1beta/files",
        "cachedContents/": "/v1beta/cachedContents",
        "fileSearchStores/": "/v1beta/fileSearchStores",
        "projects/": EVERYTHING,
    }
)
"""How the ids of stored objects begin at OpenAI, Anthropic and Google, and the path at which the
API lists such objects. Vertex AI has the names of all of them begin with their project."""

KNOWN_IDS = frozenset(
    {
        *("call_id", "tool_call_id", "tool_use_id", "tool_id", "caller_id", "approval_request_id"),
        *("tool_name", "toolset_name", "server_name", "mcp_server_name", "download_id", "tab_id"),
        *("filename", "file_name", "display_name"),
        *("user_id", "session_id", "request_id", "stream_id", "continuation_id"),
    }
)
"""Fields that are named like those of an object, and name none: what stands in the request itself,
files by the names that the client gives them, and the client and its requests."""

TOKEN_IDS = frozenset(
    {
        *("stop_token_ids", "allowed_token_ids", "bad_words_ids", "prompt_token_ids", "token_ids"),
        *("bos_token_id", "eos_token_id", "pad_token_id"),
    }
)
"""Likewise; numbers of tokens."""

CONNECTOR_ID = "connector_id"
"""A service that OpenAI's tools call with a credential of the client's (`connector_gmail`); at
Mistral an object of the account."""

FREE_TEXTS = frozenset(
    {
        *("type", "role", "name", "model", "status", "phase", "object", "title", "description"),
        *("content", "text", "input", "output", "instructions", "system", "arguments", "refusal"),
        *("thinking", "reasoning", "reasoning_content", "summary", "signature", "data", "result"),
        *("encrypted_content", "encrypted_index", "cited_text", "document_title", "suffix"),
        *("user", "safety_identifier", "prompt_cache_key", "tool_choice", "include", "betas"),
        *("stop", "stop_sequences", "url", "image_url", "file_url", "file_data", "server_url"),
        *("server_label", "server_description", "authorization", "authorization_token"),
        *("allowed_tools", "exclude_tools", "tool_names", "query", "queries", "cache_salt"),
        *("key", "value", "pattern", "path", "code", "command", "commands", "diff"),
        *("logs", "stdout", "stderr", "error", "message", "reason"),
    }
)
"""Fields with texts of the client's or the model's own, whatever they look like."""

CLIENT_FIELDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(("metadata", "client_metadata", "trace"), frozenset({""})),
        **dict.fromkeys(("structured_outputs", "guided_json", "json_schema"), frozenset({""})),
        "schema": frozenset({"json_schema", "format", "response_format", "output_format"}),
        "arguments": frozenset({"function", "function_call", "input"}),
        **dict.fromkeys(("headers", "configs"), frozenset({"tools"})),
    }
)
"""Fields whose content is the client's own, whatever is in it, and the fields in which they are so;
an empty name is the body itself. `client_metadata` is Codex', `trace` OpenRouter's, and `configs`
are Anthropic's, by the names of tools."""

SCHEMA_FIELDS = frozenset({"parameters", "input_schema", "output_schema", "input_examples"})
"""Fields of a tool that describe its calls, so that their content is the client's own."""

CLIENTS_TOOLS = frozenset({"", "function", "custom", "tool_search"})
"""Types of tools that the client runs. The `parameters` of a hosted one may say where it looks."""

TOOL_FIELDS = frozenset({"tools", "functions", "function"})

CALL_TYPES = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
"""Anthropic's calls, whose `input` the model wrote."""

VARIABLES = "variables"
"""The field of a stored prompt in which the client has chosen all names."""

ID_HOLDERS = frozenset({"messages", "tool_calls", "plugins", "documents"})
"""Fields with objects that have an `id` of the client's or the model's own; OpenRouter's plugins
have their names there."""

CONVERSATIONS = frozenset({"messages", "input"})

LOADED_ITEMS: Mapping[str, str] = MappingProxyType(
    {
        "reasoning": "encrypted_content",
        "compaction": "encrypted_content",
        "image_generation_call": "result",
        "": "role",
    }
)
"""Types of items that Responses loads by their id where this field of theirs is empty. One without
a type is a message if it has a role, and else a reference, whatever empty fields it has."""

ITEM_FIELDS = frozenset({"id", "type", *LOADED_ITEMS.values()})
"""Fields by which it is known whether Responses loads an item."""
