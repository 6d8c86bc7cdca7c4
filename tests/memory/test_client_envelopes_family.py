"""Model families: which names are the same model."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from abridge.memory.client_envelopes import model_family

FAMILIES = {
    "gpt-5": (
        "gpt-5",
        "GPT-5",
        "openai/gpt-5",
        "gpt-5-2025-08-07",
        "openai/gpt-5-2025-08-07:nitro",
    ),
    "gpt-5-mini": ("gpt-5-mini", "gpt-5-mini-2025-08-07"),
    "gpt-4.1": ("gpt-4.1", "gpt-4.1-2025-04-14"),
    "gpt-4": ("gpt-4", "gpt-4-0613"),
    "o1": ("o1", "openai/o1", "o1-2024-12-17"),
    "o3-mini": ("o3-mini",),
    "gpt-oss-20b": ("gpt-oss-20b", "openai/gpt-oss-20b", "openai/gpt-oss-20b:free"),
    "gpt-oss-120b": (
        "gpt-oss-120b",
        "openai/gpt-oss-120b",
        "@cf/openai/gpt-oss-120b",
        "accounts/fireworks/models/gpt-oss-120b",
    ),
    "gpt-oss": ("gpt-oss", "gpt-oss:latest", "gpt-oss:cloud"),
    "gpt-oss:20b": ("gpt-oss:20b",),
    "gpt-oss:120b": ("gpt-oss:120b",),
    "gpt-oss:120b-cloud": ("gpt-oss:120b-cloud",),
    "/models/gpt-oss/20b": ("/models/gpt-oss/20b", "/models/gpt-oss/20b/"),
    "/models/gpt-oss/120b": ("/models/gpt-oss/120b",),
    "models/gpt-oss/20b": ("models/gpt-oss/20b",),
    "./out/final": ("./out/final",),
    "claude-sonnet-4": (
        "claude-sonnet-4",
        "claude-sonnet-4-20250514",
        "claude-sonnet-4@20250514",
        "claude-sonnet-4-latest",
        "anthropic/claude-sonnet-4:floor",
    ),
    "claude-sonnet-4.5": ("anthropic/claude-sonnet-4.5",),
    "deepseek-r1": ("deepseek-ai/DeepSeek-R1", "deepseek-r1-0528", "deepseek/deepseek-r1:free"),
    "deepseek-r1:8b": ("deepseek-r1:8b",),
    "deepseek-r1-distill-qwen-32b": ("deepseek-r1-distill-qwen-32b",),
    "kimi-k2-preview": ("kimi-k2-0905-preview", "kimi-k2-0711-preview"),
    "mistral-large": ("mistral-large-latest", "mistral-large-2411", "mistral-large-2407"),
    "command-r": ("command-r", "command-r-08-2024"),
    "qwen3-235b-a22b-thinking": ("Qwen/Qwen3-235B-A22B-Thinking-2507",),
    "qwen3-235b-a22b": ("Qwen/Qwen3-235B-A22B",),
    "qwen3-32b": ("Qwen/Qwen3-32B", "qwen3-32b"),
    "qwen3:32b": ("qwen3:32b",),
    "qwen3-8b-gguf:q4_k_m": ("hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M",),
    "llama3-70b-8192": ("llama3-70b-8192",),
    "llama3-70b-1024": ("llama3-70b-1024",),
    "phi-4-reasoning:plus": ("phi-4-reasoning:plus",),
    "phi-4-reasoning": ("phi-4-reasoning",),
    "ft:gpt-4o:acme::ab12": ("ft:gpt-4o-2024-08-06:acme::ab12",),
    "gemini-2.5-flash-preview": ("gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash-preview"),
    "": ("", " "),
}


@pytest.mark.parametrize(
    ("model", "known"), [(model, known) for known in FAMILIES for model in FAMILIES[known]]
)
def test_snapshots_and_gateways_of_a_model_are_one_family(model: str, known: str) -> None:
    assert model_family(model) == known


def test_different_models_are_different_families() -> None:
    for one, other in combinations(FAMILIES, 2):
        assert model_family(one) != model_family(other)


sizes = st.integers(1, 2000)
makers = st.sampled_from(["", "openai/", "hf.co/unsloth/", "accounts/fireworks/models/"])
snapshots = st.sampled_from(["", "-2025-08-07", "-20250807", "-0807", "@20250807", "-latest"])


@given(sizes, sizes, st.sampled_from(["b", "m", "b-a3b", "x7b"]), makers, snapshots)
def test_a_models_size_stays_in_its_family(
    one: int, other: int, unit: str, maker: str, snapshot: str
) -> None:
    for form in ("model-{}", "model:{}", "/models/model/{}"):
        names = [maker * (form[0] != "/") + form.format(f"{n}{unit}") for n in (one, other)]
        same = model_family(names[0] + snapshot) == model_family(names[1])
        assert same == (one == other)


@example("0 /")
@example("0 :latest")
@example("0:latest-2000-00-00")
@given(st.text(max_size=40))
def test_a_family_is_its_own_family(model: str) -> None:
    assert model_family(model_family(model)) == model_family(model)


def test_a_name_with_many_tags_has_a_family() -> None:
    """Taking each off all that is before it would take minutes here."""
    assert model_family("m" + ":free" * 1_000_000) == "m"
    assert model_family(":free" * 1_000_000) == ":free"
