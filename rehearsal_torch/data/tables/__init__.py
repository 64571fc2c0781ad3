"""Tables from files: separated text, Excel workbooks and Parquet."""
