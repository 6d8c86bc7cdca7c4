"""Background responses: `background: true` for upstreams that keep none themselves."""
