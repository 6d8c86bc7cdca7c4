"""Take one request through Abridge, from its body to the last byte of its answer."""
