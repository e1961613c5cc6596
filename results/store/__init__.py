"""The result store: Parquet files, their schema, index and journal, and the commands that maintain them."""
