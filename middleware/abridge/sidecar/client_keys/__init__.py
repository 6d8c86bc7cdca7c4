"""Keys of Abridge's own, which `server.keys_file` gives to clients: who may ask, for which models,
and how much."""
