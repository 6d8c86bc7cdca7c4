"""Read and write the wire formats of the APIs that clients and upstreams speak.

Pure: no I/O, no clock, no task. Bytes come in and go out as arguments and results.
"""
