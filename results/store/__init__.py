"""The store: Parquet files, their schema, index, journal and care."""
