"""Files and object stores as tables of DataFusion."""
