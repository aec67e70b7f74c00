"""Finding parameters: by gradient on a smooth objective, or exactly on the measure; validation queries choose."""
