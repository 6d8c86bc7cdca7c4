"""Make the titles of extracted parts."""
