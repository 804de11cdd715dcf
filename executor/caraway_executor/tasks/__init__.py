"""Work of schedulers on an executor: their catalogs, their tasks and the places for these."""
