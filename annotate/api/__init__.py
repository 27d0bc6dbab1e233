"""REST: rounds and decisions for leads, and a grader's own work."""
