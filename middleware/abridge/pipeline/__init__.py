"""Take one request through Abridge, from its body to the last byte of its answer.

A request is read (`reading`), parsed (`request`) and dispatched (`dispatch`) to one of upstream's
APIs (`discovery`). For that API it is prepared (`prepare`) by a list of steps (`steps`). If nothing
is due to its client, the application answers by itself. Otherwise the request is engaged
(`engage`): what is shown and summarized is planned (`exchange_plan`), and the application runs in
an exchange (`exchange`).

A response goes through one of the kinds of `answers`. Each frame of a stream is read into events,
the events pass the Sequencer, which calls summarizers (`summary_runner`), and those that leave it
are written to the client (`client`). With the last event the answer is remembered
(`answer_memory`).
"""
