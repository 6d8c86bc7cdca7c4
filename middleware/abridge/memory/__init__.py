"""Keep reasoning alive between turns: remember it, seal it, restore it.

Start reading at `turn_memory`, the memory of one request; it uses the `route_memory` of its route,
which has a store (`stores/`), the `summaries` that were shown, and the `policy` for what upstream
receives. `client_envelopes` hands reasoning to clients that carry it themselves; `cipher` is what
they and the stores seal with.
"""
