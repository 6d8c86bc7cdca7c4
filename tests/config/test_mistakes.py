"""Test what is said of mistakes in settings: where, which key, what it takes, what was meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from abridge.apis.registry import UPSTREAM_APIS
from abridge.config.loading import load_settings
from abridge.core.styles import STYLES
from abridge.errors import SettingsError
from abridge.sidecar.cli.commands import main

FILE = "abridge.toml"

UPSTREAM = '[[upstreams]]\nname = "main"\nbase_url = "http://127.0.0.1:9/v1"\n'
"""Three lines, before which a file's own begin on the fourth."""

PROFILES = "must be one of anthropic, auto, azure, "

SIZE = 'must be a number of bytes, such as 1048576 or "32MiB"'


def one_of(*values: str) -> str:
    *first, last = map(repr, values)
    return f"must be {', '.join(first)} or {last}"


NO_SUCH = "there is no such setting"

VALUE = "a value must be a number, true, false, a list, or text in quotes"


def refused(
    folder: Path, text: str | None, variables: dict[str, str], flags: tuple[str, ...]
) -> list[str]:
    """Return what `abridge serve` says of settings that it refuses, a line for each mistake."""
    file = folder / FILE
    if text is not None:
        file.write_text(text)
        flags = ("--config", str(file), *flags)
    result = CliRunner().invoke(main, ["serve", *flags], env=variables)
    assert result.exit_code == 2, result.output
    lines = result.stderr.replace(f"{folder}/", "").splitlines()
    assert all(line.startswith("Error: ") for line in lines)
    return [line.removeprefix("Error: ") for line in lines]


@pytest.fixture(autouse=True)
def nothing_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what is not refused fail, rather than be served."""
    monkeypatch.delattr("abridge.sidecar.cli.serving.create_app")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        # no TOML
        ("[summary]\ndefault = auto\n", f"{FILE}:2: is not valid TOML: {VALUE}"),
        ("[summary]\nlive = True\n", f"{FILE}:2: is not valid TOML: {VALUE}"),
        ("[summary\n", f"{FILE}:1: is not valid TOML: Expected ']' at the end of a table"),
        ("summary:\n  default: auto\n", f"{FILE}:1: is not valid TOML: Expected '=' after a key"),
        ("[log]\n\n[log]\n", f"{FILE}:3: is not valid TOML: Cannot declare ('log',) twice"),
        ("[summary]\nallow = [\n1\n", f"{FILE}:3: is not valid TOML: Unclosed array"),
        # tables and keys that there are not
        ("[sumary]\ngrace = 1\n", f"{FILE}:1: sumary: {NO_SUCH}; did you mean summary?"),
        (
            "[summary]\nlive = true\ngraze = 1\n",
            f"{FILE}:3: summary.graze: {NO_SUCH}; did you mean summary.grace?",
        ),
        (
            'default = "auto"\n',
            f"{FILE}:1: default: {NO_SUCH}; did you mean summary.default?",
        ),
        (
            "[server]\nmax-in-flight = 9\n",
            f"{FILE}:2: server.max-in-flight: {NO_SUCH}",
        ),
        (
            "[server]\nin_flight = 9\n",
            f"{FILE}:2: server.in_flight: {NO_SUCH}; did you mean limits.in_flight?",
        ),
        (
            '[[upstream]]\nbase_url = "http://127.0.0.1:9/v1"\n',
            f"{FILE}:1: upstream: {NO_SUCH}; did you mean upstreams?",
        ),
        (
            f'{UPSTREAM}url = "http://127.0.0.1:9/v1"\n',
            (
                f"{FILE}:4: upstreams[0].url (of 'main'): {NO_SUCH}; did you mean "
                "upstreams[0].base_url?"
            ),
        ),
        (
            f'{UPSTREAM}api_key = "sk-secret"\n',
            (
                f"{FILE}:4: upstreams[0].api_key (of 'main'): {NO_SUCH}; did you mean "
                "upstreams[0].api_key_env?"
            ),
        ),
        (
            f"{UPSTREAM}summary.graze = 1\n",
            (
                f"{FILE}:4: upstreams[0].summary.graze (of 'main'): {NO_SUCH}; did you mean "
                "upstreams[0].summary.grace?"
            ),
        ),
        (
            "[summarizer.prompts]\nconsice = 'x'\n",
            (
                f"{FILE}:2: summarizer.prompts.consice: {NO_SUCH}; did you mean "
                "summarizer.prompts.concise?"
            ),
        ),
        # the wrong kind of value
        (
            '[upstreams]\nbase_url = "http://127.0.0.1:9/v1"\n',
            (
                f"{FILE}:1: upstreams: must be a list of tables: [[upstreams]] above each in a "
                "file, not [upstreams]; JSON such as "
            ),
        ),
        (
            '[upstreams.main]\nbase_url = "http://127.0.0.1:9/v1"\n',
            f"{FILE}:1: upstreams: must be a list of tables: ",
        ),
        (
            'upstreams = ["http://127.0.0.1:9/v1"]\n',
            f"{FILE}:1: upstreams[0]: must be a table",
        ),
        ('summary = "auto"\n', f"{FILE}:1: summary: got 'auto'; must be a table"),
        (
            '[summary]\ngrace = "30s"\n',
            f"{FILE}:2: summary.grace: got '30s'; must be a number of seconds, without a unit",
        ),
        ("[summary]\ngrace = -1\n", f"{FILE}:2: summary.grace: got -1; must be at least 0"),
        (
            "[summary]\npart_chars = 1.5\n",
            f"{FILE}:2: summary.part_chars: got 1.5; must be a whole number of characters",
        ),
        (
            '[summary]\nlive = "maybe"\n',
            f"{FILE}:2: summary.live: got 'maybe'; must be true or false",
        ),
        ("[server]\nhost = 1\n", f"{FILE}:2: server.host: got 1; must be text"),
        (
            "[server]\nport = true\n",
            f"{FILE}:2: server.port: got 'true'; must be a whole number",
        ),
        ("[server]\nport = 70000\n", f"{FILE}:2: server.port: got 70000; must be at most 65535"),
        ("[server]\nworkers = 0\n", f"{FILE}:2: server.workers: got 0; must be more than 0"),
        *(
            (f'[limits]\nbody = "{size}"\n', f"{FILE}:2: limits.body: got '{size}'; {SIZE}")
            for size in ("lots", "1GB?", "1,5GB", "-1", "1 MB 2", "32MO", "")
        ),
        ("[limits]\nbody = 0\n", f"{FILE}:2: limits.body: got 0; must be more than 0"),
        (
            '[history]\nanonymous = "some"\n',
            f"{FILE}:2: history.anonymous: got 'some'; must be true or false, or 'loopback'",
        ),
        # values that can match nothing
        *(
            (
                f'[server]\nallowed_hosts = ["{host}"]\n',
                f"{FILE}:2: server.allowed_hosts[0]: {got}must be a host name or a glob, ",
            )
            for host, got in (
                ("http://name", ""),
                ("name:8400", "got 'name:8400'; "),
                ("name/v1", "got 'name/v1'; "),
                ("name.", "got 'name.'; "),
                ("", "got ''; "),
            )
        ),
        *(
            (
                f'[server]\nallowed_origins = ["{origin}"]\n',
                f"{FILE}:2: server.allowed_origins[0]: {got}must be an origin or a glob, ",
            )
            for origin, got in (
                ("app.example.com", "got 'app.example.com'; "),
                ("https://app.example.com/", ""),
                ("https://*.example.com/app", ""),
                ("app.example.com/*", "got 'app.example.com/*'; "),
            )
        ),
        # values that there are not
        (
            '[summary]\ndefault = "atuo"\n',
            (
                f"{FILE}:2: summary.default: got 'atuo'; {one_of('off', *STYLES)}; "
                "did you mean 'auto'?"
            ),
        ),
        (
            "[summary]\nallow = [\n  'concise',\n  'detaild',\n]\n",
            (
                f"{FILE}:2: summary.allow[1]: got 'detaild'; {one_of(*STYLES)}; "
                "did you mean 'detailed'?"
            ),
        ),
        (
            '[summary]\nlanguage = "german"\n',
            f"{FILE}:2: summary.language: got 'german'; must be auto, reasoning, or a language tag",
        ),
        (
            f'{UPSTREAM}api = "response"\n',
            (
                f"{FILE}:4: upstreams[0].api (of 'main'): got 'response'; "
                f"{one_of('same', 'auto', *UPSTREAM_APIS)}; did you mean 'responses'?"
            ),
        ),
        (
            f'{UPSTREAM}profile = "vlm"\n',
            f"{FILE}:4: upstreams[0].profile (of 'main'): got 'vlm'; {PROFILES}",
        ),
        (
            '[[upstreams]]\nname = "my model"\n',
            f"{FILE}:2: upstreams[0].name: got 'my model'; must begin with a letter or digit, and",
        ),
        # addresses
        *(
            (
                f'{UPSTREAM}[[upstreams]]\nname = "b"\nbase_url = "{url}"\n',
                f"{FILE}:6: upstreams[1].base_url (of 'b'): must be {words}",
            )
            for url, words in (
                ("127.0.0.1:8000/v1", "an http or https address such as"),
                ("localhost", "an http or https address such as"),
                ("ftp://x/v1", "an http or https address such as"),
                ("http://x/v1/chat/completions", "the address without /chat/completions, which"),
                ("http://x/v1/messages/", "the address without /messages, which Abridge adds"),
                ("http://x/v1/models", "the address without /models, which Abridge adds"),
                ("http://u:sk-secret@x/v1", "an address without credentials, query, fragment or"),
                ("http://x/v1?key=sk-secret", "an address without credentials, query, fragment"),
                ("http://x:99999/v1", "an address without credentials, query, fragment or invalid"),
                ("http://x y/v1", "an address with a valid host name or IP address"),
                ("http://x..y/v1", "an address with a valid host name or IP address"),
                (f"http://{64 * 'x'}.y/v1", "an address with a valid host name or IP address"),
            )
        ),
        # secrets where others belong
        (
            f'{UPSTREAM}fallback = "https://u:sk-secret@x/v1"\n',
            f"{FILE}:4: upstreams[0].fallback (of 'main'): must begin with a letter or digit",
        ),
        (
            f'{UPSTREAM}forward_headers = ["x-key: sk-secret"]\n',
            f"{FILE}:4: upstreams[0].forward_headers[0] (of 'main'): must be a header name",
        ),
        (
            f'{UPSTREAM}forward_headers = "x-key: sk-secret"\n',
            f"{FILE}:4: upstreams[0].forward_headers (of 'main'): must be a list, such as",
        ),
        # globs
        *(
            (
                f"{UPSTREAM}models = {globs}\n",
                f"{FILE}:4: upstreams[0].{words}",
            )
            for globs, words in (
                ("'gpt-*'", "models (of 'main'): got 'gpt-*'; must be a list, such as [\"gpt-*\"]"),
                ("[]", "models (of 'main'): got []; must not be empty"),
                ("['']", "models[0] (of 'main'): got ''; must be a model name or a glob"),
                ("['a', ' b']", "models[1] (of 'main'): got ' b'; must be a model name or a"),
                ("['gpt-[45']", "models[0] (of 'main'): got 'gpt-[45'; must be a glob with a ]"),
                (
                    "['gpt-*, o3']",
                    "models[0] (of 'main'): got 'gpt-*, o3'; must be a single glob; ",
                ),
            )
        ),
        # contradictions
        (
            f"{UPSTREAM}{UPSTREAM}",
            f"{FILE}:5: upstreams[1].name: two are named 'main'; each needs a unique name",
        ),
        (
            f'{UPSTREAM}fallback = "spare"\n',
            f"{FILE}:4: upstreams[0].fallback (of 'main'): must name another upstream, not 'spare'",
        ),
        (
            f'{UPSTREAM}[upstreams.reasoning]\nexpose = "summary"\n',
            (
                "summarizer.kind: 'extractive' copies sentences of the raw reasoning, which "
                "upstreams[0].reasoning.expose = 'summary' hides; must be model, upstream or object"
            ),
        ),
        (
            f'{UPSTREAM}api_key_env = "K"\ncredential = "client"\n',
            f"{FILE}:5: upstreams[0].credential (of 'main'): must not be set together with",
        ),
        (
            f'{UPSTREAM}[summarizer]\nkind = "model"\nmodel = "m"\n',
            f"{FILE}:4: summarizer: kind = 'model' needs base_url",
        ),
        (
            f"{UPSTREAM}[server]\nworkers = 2\npage = true\n",
            f"{FILE}:5: server.workers: must be 1 with server.page",
        ),
        # secrets
        (
            f'{UPSTREAM}api_key_env = "NOT_SET"\n',
            (
                f"{FILE}:4: upstreams[0].api_key_env (of 'main'): neither the variable NOT_SET, "
                "which it names, nor NOT_SET_FILE"
            ),
        ),
        (
            f'{UPSTREAM}credential = "sk-secret"\n',
            f"{FILE}:4: upstreams[0].credential (of 'main'): must be 'client' or 'none'",
        ),
        (
            f'{UPSTREAM}api_key_env = ["sk-secret"]\n',
            f"{FILE}:4: upstreams[0].api_key_env (of 'main'): must be text",
        ),
        (
            f'{UPSTREAM}api_key_env = "sk-secret"\n',
            f"{FILE}:4: upstreams[0].api_key_env (of 'main'): must name an environment variable",
        ),
        ("", "upstreams: none is set; set at least one, with --upstream"),
    ],
)
def test_a_mistake_in_the_file_is_said_in_one_line(tmp_path: Path, text: str, line: str) -> None:
    (said,) = refused(tmp_path, text, {}, ())
    assert said.startswith(line)
    assert "sk-secret" not in said


def test_an_address_in_place_of_a_name_is_not_repeated_with_other_mistakes(tmp_path: Path) -> None:
    text = '[[upstreams]]\nname = "https://u:sk-secret@x/v1"\nmodels = []\n'
    lines = sorted(refused(tmp_path, text, {}, ()))
    assert lines[0].startswith(f"{FILE}:2: upstreams[0].name: must begin with a letter or digit")
    assert lines[1:] == [f"{FILE}:3: upstreams[0].models: got []; must not be empty"]


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("ABRIDGE_SUMMARY__GRACE", "soon", "got 'soon'; must be a number of seconds"),
        ("ABRIDGE_SUMMARY__GRAZE", "1", f"{NO_SUCH}; did you mean ABRIDGE_SUMMARY__GRACE?"),
        ("ABRIDGE_SUMARY__GRACE", "1", f"sumary: {NO_SUCH}; did you mean ABRIDGE_SUMMARY?"),
        (
            "ABRIDGE_SUMMARY_DEFAULT",
            "auto",
            (
                "there is no such variable; two underscores separate a table from its key; did you "
                "mean ABRIDGE_SUMMARY__DEFAULT?"
            ),
        ),
        (
            "ABRIDGE_SUMMARY",
            "auto",
            (
                "there is no such variable; two underscores separate a table from its key; did you "
                "mean ABRIDGE_SUMMARY__DEFAULT?"
            ),
        ),
        (
            "ABRIDGE_UPSTREAMS",
            '[{"api_key": "x"}]',
            f"upstreams[0].api_key: {NO_SUCH}; did you mean upstreams[0].api_key_env?",
        ),
        ("ABRIDGE_UPSTREAM", "x", "there is no such variable; did you mean ABRIDGE_UPSTREAMS?"),
        (
            "ABRIDGE_UPSTREAMS",
            "[{'base_url': 'x'}]",
            (
                "must be valid JSON, as a list or table requires: Expecting property name "
                "enclosed in double quotes at character 3"
            ),
        ),
        ("ABRIDGE_UPSTREAMS", "http://127.0.0.1:9/v1", "must be a list of tables: "),
        ("ABRIDGE_UPSTREAMS", '[{"base_url": "x"}]', "upstreams[0].base_url: must be an http or"),
        ("ABRIDGE_SUMMARY__ALLOW", "concise", "got 'concise'; must be a list, such as [\"conci"),
        (
            "ABRIDGE_SUMMARY__ALLOW",
            "auto, concise",
            'got \'auto, concise\'; must be a list, such as ["auto", "concise"]',
        ),
    ],
)
def test_a_mistake_in_a_variable_is_said_by_its_name(
    tmp_path: Path, name: str, value: str, line: str
) -> None:
    (said,) = refused(tmp_path, UPSTREAM, {name: value}, ())
    assert said.startswith(f"{name}: {line}")


def test_upstreams_cannot_be_set_by_a_variable_for_each_key(tmp_path: Path) -> None:
    name = "ABRIDGE_UPSTREAMS__0__BASE_URL"
    (said,) = refused(tmp_path, None, {name: "http://127.0.0.1:9/v1"}, ())
    assert said.startswith(f"{name}: upstreams: must be a list of tables: ")


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (("--port", "http"), "--port: got 'http'; must be a whole number"),
        (("--workers", "2", "--page"), "--workers: must be 1 with server.page"),
        (("--upstream", "localhost:1"), "--upstream: must be an http or https address"),
        (("--profile", "vllm"), "--profile: needs --upstream"),
        (
            ("--upstream", "http://localhost:9/v1", "--port", "9"),
            "--upstream: is Abridge's own address, 127.0.0.1:9; must be the model server",
        ),
        (
            ("--upstream", "http://127.0.0.1:9/v1", "--api", "anthropic"),
            "--api: got 'anthropic'; must be 'same', ",
        ),
    ],
)
def test_a_mistake_in_a_flag_is_said_by_its_name(
    tmp_path: Path, flags: tuple[str, ...], line: str
) -> None:
    (said,) = refused(tmp_path, UPSTREAM, {}, flags)
    assert said.startswith(line)


def test_all_mistakes_are_said_at_once(tmp_path: Path) -> None:
    text = '[summary]\ngrace = "x"\n[[upstreams]]\nsummary.graze = 1\nmodel = 1\n[sever]\n'
    variables = {"ABRIDGE_LOG__FORMAT": "xml", "ABRIDGE_UPSTREAMS_": "1", "ABRIDGE_A__B": "["}
    said = refused(tmp_path, text, variables, ("--port", "x", "--workers", "y"))
    assert sorted(line.partition(": ")[0] for line in said) == [
        "--port",
        "--workers",
        *("ABRIDGE_A__B", "ABRIDGE_LOG__FORMAT", "ABRIDGE_UPSTREAMS_"),
        *(f"{FILE}:2", f"{FILE}:4", f"{FILE}:5", f"{FILE}:6"),
    ]


def test_so_are_all_contradictions_and_all_missing_secrets(tmp_path: Path) -> None:
    again = UPSTREAM.replace("main", "b")
    text = f'{UPSTREAM}{again}[server]\nworkers = 2\npage = true\n[reasoning]\nexpose = "summary"\n'
    said = refused(tmp_path, text, {}, ())
    assert [line.partition(" ")[0] for line in said] == ["summarizer.kind:", *[f"{FILE}:8:"] * 2]
    key = 'api_key_env = "NOT_SET"\n'
    said = refused(tmp_path, f"{UPSTREAM}{key}{again}{key}", {}, ())
    assert [line.partition(" ")[0] for line in said] == [f"{FILE}:4:", f"{FILE}:8:"]


def test_where_part_is_missing_nothing_is_said_to_contradict(tmp_path: Path) -> None:
    variables = {"ABRIDGE_SUMMARIZER__PROMPTS": "{", "ABRIDGE_REASONING__EXPOSE": "summary"}
    (said,) = refused(tmp_path, UPSTREAM, variables, ())
    assert said.startswith("ABRIDGE_SUMMARIZER__PROMPTS: must be valid JSON")


def test_a_file_that_cannot_be_read_is_said_to_be(tmp_path: Path) -> None:
    assert refused(tmp_path, None, {}, ("--config", str(tmp_path))) == [
        f"{tmp_path}: cannot be read: Is a directory"
    ]
    nowhere = str(tmp_path / "nowhere.toml")
    assert refused(tmp_path, None, {}, ("--config", nowhere)) == [
        "nowhere.toml: cannot be read: No such file or directory"
    ]
    latin = tmp_path / "latin.toml"
    latin.write_bytes('[log]\nformat = "é"\n'.encode("latin-1"))
    assert refused(tmp_path, None, {}, ("--config", str(latin))) == [
        "latin.toml: must be UTF-8 text, as TOML requires"
    ]


def test_the_line_is_found_whatever_is_around_it(tmp_path: Path) -> None:
    text = (
        '# [summary]\n[summarizer]\nprompts.auto = """\n[summary]\ngrace = "x"\n"""\n'
        "[[upstreams]] # one\nmodels = [\n  # here\n  'a',\n]\n\n[upstreams.history]\nttl = 1\n"
        "[[upstreams]]\nname = 'b'\n\n[upstreams.history]\n\nttl = 'x' # here\n"
    )
    (said,) = refused(tmp_path, text, {}, ())
    assert said.startswith(f"{FILE}:20: upstreams[1].history.ttl (of 'b'): got 'x'; ")


def test_a_value_is_said_to_be_where_the_last_source_set_it(tmp_path: Path) -> None:
    text = f'{UPSTREAM}[summary]\ngrace = "file"\n'
    variables = {"ABRIDGE_SUMMARY__GRACE": "variable", "ABRIDGE_UPSTREAMS": '[{"base_url": "x"}]'}
    said = refused(tmp_path, text, variables, ())
    assert [line.partition(":")[0] for line in said] == [
        "ABRIDGE_UPSTREAMS",
        "ABRIDGE_SUMMARY__GRACE",
    ]


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_text("\ufeff[summary]\ngrace = 1\n")
    assert load_settings(file, {}).summary.grace == 1


@pytest.mark.parametrize("size", [1024, "1024", "1KiB", "1 KiB", "1kib"])
def test_a_size_may_be_written_in_several_ways(size: int | str) -> None:
    assert load_settings(environ={}, flags={"limits": {"event": size}}).limits.event == 1024


def test_variables_that_are_no_mistake_are_ignored() -> None:
    upstreams = '[{"base_url": "http://u/v1", "api_key_env": "ABRIDGE_UPSTREAM"}]'
    environ = {
        "ABRIDGE_UPSTREAMS": upstreams,
        "ABRIDGE_UPSTREAM": "sk-a",
        "ABRIDGE_SERVER_SERVICE_HOST": "10.0.0.1",
        "ABRIDGE_SERVER_PORT": "tcp://10.0.0.1:8400",
        "ABRIDGE_SERVER_HOST": "of a Service called abridge-server",
        "ABRIDGE_LOG_FORMAT": "tcp://10.0.0.1:80",
        "ABRIDGE_VERSION": "1.2",
    }
    assert load_settings(environ=environ).upstreams[0].api_key_env == "ABRIDGE_UPSTREAM"
    del environ["ABRIDGE_SERVER_SERVICE_HOST"]
    with pytest.raises(SettingsError, match=r"^ABRIDGE_SERVER_HOST: there is no such variable"):
        load_settings(environ=environ)
