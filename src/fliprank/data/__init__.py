"""What is ranked: candidates, and the files they come from."""
