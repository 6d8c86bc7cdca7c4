"""Test the envelopes that clients carry, and the families of models that open them."""

from __future__ import annotations

import re
import tracemalloc
import zlib
from base64 import urlsafe_b64decode
from itertools import combinations
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from abridge.memory.client_envelopes import model_family

pytest.importorskip("cryptography", reason="sealing needs the extra 'seal'")

from abridge.apis.chat.history import make_envelope
from abridge.core.conversation import RecordedTurn, Turn
from abridge.core.envelope import ENVELOPE_PREFIX, Envelope, is_envelope
from abridge.errors import RequestError
from abridge.memory.cipher import SALT_BYTES, Cipher, CompressedValue
from abridge.memory.client_envelopes import _BLOB_HEADER, Sealer
from abridge.memory.keys import Key, Keyring
from tests.support.matrix import some
from tests.support.sealers import NEW, NOW, OLD, PLACE, ring, sealer

PARAM = "input[3].encrypted_content"
THOUGHT = "I recall the rule of odd numbers. "
ENVELOPE = Envelope([{"type": "reasoning", "content": THOUGHT * 20}], "rs_1", PLACE)
SIZE = len(THOUGHT) * 20
VERSION_1 = (
    "abr1.old.AAAAAGtJ0gCdjhmzjttywDdlvKPy_fdqpNgTFHwzwvRTZrOyXuKLpODYHPfyCPFzxfA7k9OiGkI"
    "BA7IIwgIrpTrd6zh9-Hpf2soXks68p4G_LPd5-RioATQqAAAAUG9sZERtFlXRN-IyV7syJHfxcQB-2R1V04-"
    "baeZYidVvLBhvJFm8DV8NA_7_U_LX0HkS36CiB-WRuX5nrv_cnLU6gedePl--SWG2rgU9JlZkSV7sO5YaUxn"
    "QRQ"
)
"""A blob of the format before, which was not bound to its place."""

BLOB = (
    "abr1.old.AgAAAABrSdIA5lAGPOTh_izqWUO55QdkKR95EJm2aWDni_R1VQC65pmhzybphn5YzLtz3rOlxnUhpWac-"
    "xED1RMH_ax3oAjEZiF39GfyZrvnWzWH2pVohpgBAxEN3U66jVVfhAxpjax1kSHiSepvU2LIR-gpvcKdBDhKAAAAN29"
    "sZOKRUNpfej9qxTyoXNz3gSxv7KB6GEucnPaMik2wwRS19r0aKqVbn_mjf2H_3MqJ9EF2og9QRz-wIwAcqBOVXDz-n"
    "aI2zg"
)
"""`I recall.`, sealed with the key `old` for `anna`; the cipher's version is 1."""

BLOB_OF_CIPHER_2 = (
    "abr1.old.AgAAAABrSdIAqI6NJ0_x5Gmlgm1-o-"
    "CKf3NsEv8UvUHtwKhxEc6JbHqHXq811III0lMngcO4yheWnXmqY4MrDNpfKVR3fj2N9_qRnPklBdHQmlQfkJ8ZCJYC"
    "A7jSOJ-Ez6EtvduO79-"
    "JNjn95YwBISX_fLe6DDPHQ0BtAAAAN29sZJlm5zfaJKf88dF2vW21ILSPqa3ZLxSxMhuY2xWCRWVgsdwYViJAz37D-"
    "tTO2fQ6PyYxRJkHdIb5q1NWYM0KZb2en1CRuA"
)
"""The same, with version 2 of the cipher."""


def opened(by: Sealer, blob: str, place: bytes | None = PLACE, item: str = "") -> Envelope | None:
    return by.open(blob, PARAM, place, item)


def refused(by: Sealer, blob: str) -> bool:
    """Whether it is an error that names what is wrong with it, and counts for nothing."""
    with pytest.raises(RequestError) as caught:
        opened(by, blob)
    error = caught.value
    named = (error.status, error.code, error.param) == (400, "invalid_encrypted_content", PARAM)
    return named and PARAM in str(error) and not (by.opened or by.dropped)


def decoded(blob: str) -> bytes:
    encoded = blob.split(".")[2]
    return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))


integers = st.integers(-(1 << 63), (1 << 64) - 1)  # others come back as `ExactNumber`
json = st.recursive(
    st.none() | st.booleans() | integers | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
envelopes = st.builds(
    Envelope,
    st.lists(st.dictionaries(st.text(max_size=8), json, max_size=4), max_size=3),
    st.text(max_size=8),
    st.just(PLACE),
)


class TestForWhom:
    @given(envelopes)
    def test_a_replica_with_the_same_keys_opens_an_envelope(self, envelope: Envelope) -> None:
        replica = sealer()
        assert opened(replica, sealer().seal(envelope)) == envelope
        assert (replica.opened, replica.dropped) == (1, {})

    @pytest.mark.parametrize(
        ("blob", "others", "place"),
        [
            (sealer().seal(ENVELOPE), [PLACE], PLACE),
            (sealer().seal(ENVELOPE), [b"another"], None),
            (sealer(tenant="bert").seal(ENVELOPE), [PLACE], None),
        ],
    )
    def test_it_may_be_from_one_of_several_places(
        self, blob: str, others: list[bytes], place: bytes | None
    ) -> None:
        found = sealer().open(blob, PARAM, b"here", "", others)
        assert (found and found.place) == place

    def test_blobs_reveal_nothing_and_differ_each_time(self) -> None:
        one, two = (sealer().seal(ENVELOPE) for _ in range(2))
        assert re.fullmatch(r"abr1\.old\.[A-Za-z0-9_-]+", one)
        assert is_envelope(one)
        assert b"odd numbers" not in decoded(one)
        assert len(one) < SIZE
        one_data, two_data = map(_without_time_and_salt, (one, two))
        assert not _chunks(one_data) & _chunks(two_data)

    @pytest.mark.parametrize("blob", [BLOB, BLOB_OF_CIPHER_2])
    def test_the_format_never_changes(self, blob: str) -> None:
        """The format is a promise: it was written by another replica, or before an update."""
        assert opened(sealer(), blob) == Envelope([{"reasoning": "I recall."}], "rs_1", PLACE)

    @pytest.mark.parametrize(
        "other",
        [
            {"tenant": "bert"},
            {"tenant": None},
            {"api": "responses"},
            {"upstream": "another"},
            {"model": "thinker-2"},
            {"upstream": "defaultt", "model": "hinker-1"},
        ],
    )
    def test_a_blob_of_another_owner_is_dropped(self, other: dict[str, Any]) -> None:
        replica = sealer(**other)
        assert opened(replica, sealer().seal(ENVELOPE)) is None
        assert (replica.opened, replica.dropped) == (0, {"foreign": 1})

    def test_a_request_without_a_tenant_gets_no_blob(self) -> None:
        assert sealer(tenant=None).seal(ENVELOPE) == ""

    def test_another_snapshot_of_the_model_opens_a_blob(self) -> None:
        blob = sealer(model="openai/gpt-5-2025-08-07").seal(ENVELOPE)
        assert opened(sealer(model="gpt-5"), blob) == ENVELOPE
        assert opened(sealer(model="gpt-5-mini"), blob) is None

    @pytest.mark.parametrize(
        ("place", "item", "fits"),
        [
            (PLACE, "", True),
            (PLACE, "rs_1", True),
            (PLACE, "rs_2", False),
            (b"elsewhere", "", False),
            (b"elsewhere", "rs_1", False),
            (b"", "", False),
            (None, "", False),
        ],
    )
    def test_a_blob_opens_in_its_own_place_only(
        self, place: bytes | None, item: str, *, fits: bool
    ) -> None:
        replica = sealer()
        assert (opened(replica, sealer().seal(ENVELOPE), place, item) == ENVELOPE) is fits
        assert replica.dropped == ({} if fits else {"edited": 1})

    def test_one_without_a_place_is_bound_to_what_the_request_ends_with(self) -> None:
        blob = sealer().seal(Envelope([{}], "rs_1"))
        assert opened(sealer(), blob) is not None
        assert opened(sealer(), sealer(place=b"elsewhere").seal(Envelope([{}], "rs_1"))) is None

    def test_the_places_of_two_blobs_cannot_be_compared(self) -> None:
        one, two = (decoded(sealer().seal(ENVELOPE)) for _ in range(2))
        tags = slice(_BLOB_HEADER.size - 64, _BLOB_HEADER.size)
        assert not _chunks(one[tags]) & _chunks(two[tags])


class TestLength:
    """How long a blob is must not tell what its secret has in common with a text of others."""

    SECRET = "The vault opens at half past nine with the word heliotrope."

    def length(self, answer: str, **more: Any) -> int:
        turn = RecordedTurn(Turn("assistant", answer), self.SECRET, [more], ())
        return len(sealer().seal(make_envelope(turn)))

    @pytest.mark.parametrize("guess", [SECRET, SECRET[::-1]])
    def test_it_is_the_same_whatever_the_answer_says(self, guess: str) -> None:
        assert self.length(guess, reasoning=self.SECRET) == self.length("", reasoning=self.SECRET)

    def test_reasoning_inside_an_answer_is_not_compressed(self) -> None:
        inline = f"<think>{self.SECRET}</think>"
        right, wrong = (
            self.length(guess, content=inline + guess) for guess in (self.SECRET, self.SECRET[::-1])
        )
        assert right == wrong

    def test_reasoning_by_itself_is_compressed(self) -> None:
        assert len(sealer().seal(ENVELOPE)) < SIZE


class TestKeys:
    def test_keys_can_be_rotated(self) -> None:
        before = sealer(ring(OLD)).seal(ENVELOPE)
        rotated = ring(NEW, OLD)
        assert opened(sealer(rotated), before) == ENVELOPE
        after = sealer(rotated).seal(ENVELOPE)
        assert after.startswith("abr1.new.")
        assert opened(sealer(ring(NEW)), after) == ENVELOPE

    def test_other_owners_stay_foreign_through_a_rotation(self) -> None:
        bert = sealer(ring(NEW, OLD), tenant="bert")
        assert opened(bert, sealer(ring(OLD)).seal(ENVELOPE)) is None
        assert bert.dropped == {"foreign": 1}

    def test_a_removed_key_opens_nothing(self) -> None:
        assert refused(sealer(ring(NEW)), sealer(ring(OLD)).seal(ENVELOPE))

    def test_another_key_with_the_same_id_opens_nothing(self) -> None:
        namesake = Keyring((Key.derive("old", bytes([2] * 32)),))
        assert refused(sealer(namesake), sealer().seal(ENVELOPE))


class TestAge:
    @pytest.mark.parametrize(
        ("passed", "known"), [(0, True), (100, True), (101, False), (-3600, True)]
    )
    def test_a_blob_expires(self, passed: float, *, known: bool) -> None:
        blob, later = sealer().seal(ENVELOPE), sealer(now=NOW + passed, ttl=100.0)
        assert (opened(later, blob) is not None) is known
        assert later.dropped == ({} if known else {"expired": 1})

    def test_a_blob_is_valid_for_a_month_by_default(self) -> None:
        blob, day = sealer().seal(ENVELOPE), 24 * 3600
        assert opened(sealer(now=NOW + 30 * day), blob) == ENVELOPE
        assert opened(sealer(now=NOW + 30 * day + 1), blob) is None


class TestTouched:
    @settings(max_examples=some(300))
    @given(st.data())
    def test_no_character_can_be_changed(self, data: st.DataObject) -> None:
        place = data.draw(st.integers(len(ENVELOPE_PREFIX), len(BLOB) - 1))
        letter = data.draw(st.characters().filter(lambda letter: letter != BLOB[place]))
        assert refused(sealer(ring(OLD, NEW)), BLOB[:place] + letter + BLOB[place + 1 :])

    def test_no_bit_can_be_changed(self) -> None:
        encoded = BLOB.split(".")[2]
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        for place, letter in enumerate(encoded):
            other = alphabet[alphabet.index(letter) ^ 1]
            touched = encoded[:place] + other + encoded[place + 1 :]
            assert refused(sealer(), f"abr1.old.{touched}")

    @pytest.mark.parametrize("place", range(len(ENVELOPE_PREFIX), len(BLOB), 7))
    def test_a_blob_cannot_be_cut(self, place: int) -> None:
        assert refused(sealer(), BLOB[:place])

    @pytest.mark.parametrize(
        "blob",
        [
            VERSION_1,
            "abr1.",
            "abr1..",
            "abr1.old",
            "abr1.old.",
            "abr1.old.A",
            "abr1.old.AAAA",
            "abr1.old." + "A" * 400,
            "abr1.old.gAAAAABo_q3Jd-8h",
            "abr1..gAAAAABo",
            "abr1.old.ü",
            "abr1.\ud800.\ud800",
            BLOB + "=",
            BLOB + "A",
            BLOB + ".A",
            BLOB + "\n",
            BLOB.replace("abr1.old.", "abr1.old.."),
            BLOB.replace("abr1.old.", "abr1.new."),
            BLOB.replace("abr1.", "abr1.abr1."),
        ],
    )
    def test_a_forged_blob_is_an_error(self, blob: str) -> None:
        assert refused(sealer(ring(OLD, NEW)), blob)

    def test_parts_of_two_blobs_make_none(self) -> None:
        one, two = (sealer(tenant=name).seal(ENVELOPE).split(".")[2] for name in ("anna", "bert"))
        for place in (0, 12, 13, 33, 76, 119, 120, 140, 190):
            cut = min(place, len(one), len(two))
            spliced = one[:cut] + two[cut:]
            if spliced not in (one, two):
                assert refused(sealer(), f"abr1.old.{spliced}")


class TestSize:
    def test_opened_content_stays_within_the_limit(self) -> None:
        blobs = [sealer().seal(ENVELOPE) for _ in range(3)]
        room = 2 * _size(ENVELOPE)
        replica = sealer(limit=room)
        assert [opened(replica, blob) for blob in blobs] == [ENVELOPE, ENVELOPE, None]
        assert replica.dropped == {"oversize": 1}
        less = sealer(limit=room - 1)
        assert [opened(less, blob) is None for blob in blobs] == [False, True, True]

    def test_content_over_the_limit_is_not_inflated(self, monkeypatch: pytest.MonkeyPatch) -> None:
        blob = sealer().seal(ENVELOPE)
        monkeypatch.setattr(CompressedValue, "inflate", lambda _: pytest.fail("inflated"))
        assert opened(sealer(limit=_size(ENVELOPE) - 1), blob) is None
        assert opened(sealer(tenant="bert"), blob) is None
        assert opened(sealer(now=2 * NOW), blob) is None

    def test_a_compression_bomb_never_inflates_past_its_announced_size(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Only who has the keys can make one."""
        bomb = zlib.compress(bytes(64_000_000))
        monkeypatch.setattr(zlib, "compress", lambda *_: bomb)
        blob = sealer().seal(ENVELOPE)
        tracemalloc.start()
        assert refused(sealer(), blob)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 2_000_000

    def test_copies_are_opened_once_and_counted_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        boxes: list[bytes] = []
        unwatched = Cipher.decrypt

        def watched(cipher: Cipher, data: bytes, bound: bytes) -> CompressedValue | None:
            boxes.append(data)
            return unwatched(cipher, data, bound)

        monkeypatch.setattr(Cipher, "decrypt", watched)
        blob, other = sealer().seal(ENVELOPE), sealer().seal(ENVELOPE)
        replica = sealer(limit=2 * _size(ENVELOPE))
        found = [opened(replica, blob) for _ in range(3)]
        assert found == [ENVELOPE] * 3
        assert found[0].reasoning[0] is not found[1].reasoning[0]  # type: ignore[union-attr]
        assert len(boxes) == 1
        assert opened(replica, other) == ENVELOPE

    def test_copies_have_the_same_limit_again(self) -> None:
        blob, replica = sealer().seal(ENVELOPE), sealer(limit=10 * _size(ENVELOPE))
        assert sum(opened(replica, blob) is not None for _ in range(1000)) == 11
        assert replica.dropped == {"oversize": 989}

    def test_a_copy_of_a_foreign_blob_is_foreign(self) -> None:
        blob, replica = sealer().seal(ENVELOPE), sealer(tenant="bert")
        assert [opened(replica, blob), opened(replica, blob)] == [None, None]
        assert replica.dropped == {"foreign": 2}

    def test_content_over_the_limit_is_not_sealed(self) -> None:
        assert sealer(limit=_size(ENVELOPE) - 1).seal(ENVELOPE) == ""
        assert sealer(limit=_size(ENVELOPE)).seal(ENVELOPE) != ""

    def test_opened_content_is_released(self) -> None:
        replica = sealer()
        opened(replica, sealer().seal(ENVELOPE))
        replica.release()
        assert not replica._opened_blobs
        assert opened(replica, sealer().seal(ENVELOPE)) == ENVELOPE


def _size(envelope: Envelope) -> int:
    """What is opened of it, in bytes."""
    low, high = 0, 1 << 20
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if sealer(limit=middle).seal(envelope) else (middle + 1, high)
    return low


def _without_time_and_salt(blob: str) -> bytes:
    """Return what no two blobs have in common, even if one process seals both in one second."""
    data, salt_start = decoded(blob), _BLOB_HEADER.size + 2
    return data[9:salt_start] + data[salt_start + SALT_BYTES :]


CHUNK = 16
"""Bytes: the size in the clear and the key's id, seven together, are the same in alike blobs, and
one byte beside them by chance."""


def _chunks(data: bytes) -> set[bytes]:
    return {data[start : start + CHUNK] for start in range(len(data) - CHUNK)}


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
