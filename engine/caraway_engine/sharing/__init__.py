"""How the rows of a table are divided among tasks, and plans that read only a share of them."""
