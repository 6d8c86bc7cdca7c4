"""Read requests of the Responses API into model requests, and write them."""
