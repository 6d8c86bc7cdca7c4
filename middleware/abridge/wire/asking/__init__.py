"""Reading and writing requests: what all APIs share."""
