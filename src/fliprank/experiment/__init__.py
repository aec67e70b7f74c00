"""How well it works, and how sure that is: splits, cross-validation, learning curves, significance."""
