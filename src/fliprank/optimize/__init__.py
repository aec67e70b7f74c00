"""Finding parameters: by gradient on a smooth objective, chosen by the measure on validation queries."""
