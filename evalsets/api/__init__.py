"""REST: what every app's addresses under `/api/v1/` share, and those of eval sets."""
