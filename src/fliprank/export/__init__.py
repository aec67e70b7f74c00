"""What was tuned here, in the words of the engine that people run."""
