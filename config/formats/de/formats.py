"""A figure looks the same in every language: as in the exports, where it may be looked up."""

DECIMAL_SEPARATOR = "."
THOUSAND_SEPARATOR = ""
NUMBER_GROUPING = 0
