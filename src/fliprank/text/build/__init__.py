"""From documents to the arrays of an index: readers, word counts, links, inversion."""
