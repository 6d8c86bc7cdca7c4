"""The dashboard as code: `python -m grafana` prints the content of `grafana/abridge.json`.

`rows` defines the panels as data, `panel` and `dashboard` turn them into Grafana's JSON, `promql`
builds their expressions. The output is Grafana's classic JSON, in plain dicts: the only format that
every release reads from a file. The builders for it in grafana-foundation-sdk are deprecated and
warn on import, so that library is used only in the tests, to check each field and value.
"""
