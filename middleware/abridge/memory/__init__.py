"""Keep reasoning alive between turns: remember it, seal it, restore it."""
