"""The dashboard as code: `python -m grafana` prints what `grafana/abridge.json` holds.

`rows` are its panels as data, `panel` and `dashboard` spell them as Grafana does, `promql` builds
their expressions. It is Grafana's classic JSON in plain dicts, the one form that every release
takes from a file: in grafana-foundation-sdk its builders are deprecated and warn when imported, so
that library only judges, in the tests, whether each field and value is one that Grafana knows.
"""
