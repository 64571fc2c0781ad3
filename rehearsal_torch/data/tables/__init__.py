"""Tables from files and queries: separated text, Excel workbooks, Parquet, Feather and SQLite."""
