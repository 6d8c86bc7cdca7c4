"""Where what is remembered is kept: in this process, or in a Redis that several share."""
