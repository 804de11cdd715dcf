"""The source of tables of Spark, over Spark Connect."""
