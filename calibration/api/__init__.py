"""REST: what comes in and goes out as files, judges and their runs, and what may be told of them."""
