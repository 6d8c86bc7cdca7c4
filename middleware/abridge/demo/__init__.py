"""`abridge demo`: a scripted reasoning model, labelled as such, and a client that shows its
reasoning next to the summary."""
