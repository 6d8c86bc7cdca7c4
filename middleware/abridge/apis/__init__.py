"""Read and write the wire formats of the APIs that clients and upstreams speak.

Pure: no I/O, no clock, no task. Bytes come in and go out as arguments and results.

Each API has a folder with the same files. `api.py` is its row, all that the rest of Abridge knows
of it; `registry.py` lists the rows. On the way of a request: `request.py` reads and writes its
parameters, `messages.py` what was said, `tools.py` what may be called, and `history.py` finds the
turns and changes their reasoning. On the way of an answer: `reader.py`, and `writer.py` where
clients speak the API. `reasoning.py` has how reasoning is spelled, `errors.py` the error body. What
several APIs share is beside the folders, by the same names: `history.py`, `tools.py`, `shapes.py`,
`errors.py`. `openai.py` is what Chat Completions and Responses share.

A provider is no API: it is a row of `providers/catalog.py`, whose columns say where it differs.

A new API of upstreams is a folder as `gemini/` is, and its row in `registry.py`. One that clients
speak also reads requests and writes answers, as `messages/` does; if upstreams speak it already,
its row becomes an `Api` that holds the other, and its history learns envelopes and attribution.
`tests/apis/test_registry.py` says what else has to name it.
"""
