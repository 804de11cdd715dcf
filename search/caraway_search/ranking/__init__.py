"""Changes ranks after searches: fusion of several, decay with age, reranking by words."""
