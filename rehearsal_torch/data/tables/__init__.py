"""Tables from files: separated text, Excel workbooks, Parquet and Feather."""
