"""What happens to each of the hostile files: accepted with so many items, or refused on these lines."""

LABELS = "supported, contradicted, unsupported, unverifiable"

ACCEPTED = {  # file: items
    "01_bom.jsonl": 2,
    "02_crlf_blank_lines.jsonl": 2,
    "03_embedded_newlines_quotes.csv": 2,
    "08_empty_response.jsonl": 4,
    "09_response_200kB.jsonl": 1,
    "10_rtl_emoji_combining.jsonl": 5,
    "11_html_script.jsonl": 4,
    "12_formula_injection.csv": 4,
    "15_not_really_gzip.jsonl.gz": 1,
}

REFUSED = {  # file: (line, field, part of the message) of every problem, in order
    "04_duplicate_ids.jsonl": [
        (2, "id", "'q1' stands on line 1 and again on line 2"),
        (4, "id", "'q2' stands on line 3 and again on line 4"),
    ],
    "05_missing_fields.jsonl": [
        (1, "claims", "no response"),
        (2, "question", "missing"),
        (3, "claims[0].source_ids", "'c1' cites the passage 'p1', which was not served"),
        (4, "id", "missing"),
        (4, "question", "missing"),
    ],
    "06_nan_infinity.jsonl": [(n, "score", "not a JSON number") for n in (1, 2, 3)],
    "07_null_context.jsonl": [
        (1, "claims[0].source_ids", "not served"),
        (2, "claims[0].source_ids", "not served"),
        (3, "context", "not a string"),
        (3, "claims[0].source_ids", "not served"),
        (4, "context[0].text", "not null"),
        (5, "context[0]", "not a string"),
        (5, "claims[0].source_ids", "not served"),
    ],
    "13_invalid_utf8.jsonl": [(2, "", "byte 30 of the line (byte 430 of the file) is 0xe9")],
    "14_truncated.jsonl.gz": [(146, "", "the file ends early")],
    "16_nested_depth.jsonl": [(1, "", "nested more than 64 levels deep")],
    "17_ids_case_whitespace.jsonl": [(n, "id", "white space around it") for n in (3, 4, 5, 7)],
    "18_empty_claim_text.jsonl": [
        (1, "claims[0].text", "'c1' has no text"),
        (1, "claims[1].text", "'c2' has no text"),
        (1, "claims[2].text", "not null"),
        (1, "claims[3].text", "missing"),
    ],
    "19_unknown_labels.jsonl": [
        (n, "claims[0].human_labels.ana", f"ana gave a label that is not one of {LABELS}")
        for n in (4, 5, 7, 8, 9, 10)
    ],
    "20_mixed_types.jsonl": [
        (1, "id", "not a number"),
        (3, "id", "not a number"),
        (4, "id", "not true or false"),
        (5, "claims", "not an object"),
        (6, "response", "not a list"),
        (7, "response", "not a number"),
        (8, "answerable", "not a string"),
    ],
    "21_not_objects.jsonl": [
        (1, "", "this line is a list"),
        (2, "", "this line is a string"),
        (3, "", "this line is a number"),
        (4, "", "this line is null"),
        (5, "", "not JSON"),
    ],
    "22_array_instead_of_lines.json": [(1, "", "one JSON object per line is expected")],
    "23_utf16.jsonl": [(1, "", "UTF-16")],
    "24_dangling_sources.jsonl": [
        (1, "claims[0].source_ids", "'c1' cites the passage 'p9'"),
        (2, "context[1].id", "the passage id 'p1' stands twice"),
        (3, "claims[1].id", "the claim id 'c1' stands twice"),
    ],
    "25_nul_and_controls.jsonl": [(1, "question", "NUL"), (2, "question", "surrogate")],
    "26_semicolon_latin1.csv": [(2, "", "Latin-1 or Windows-1252")],
    "27_header_only.csv": [(None, "", "no rows")],
    "28_empty.jsonl": [(None, "", "the file is empty")],
    "29_gzip_bomb.jsonl.gz": [(1, "", "more than 16 MB unpacked")],
    "30_grader_labels_twice.csv": [(1, "", "the columns are not those of an eval set")],
    "31_spreadsheet_mangled.csv": [(6, "id", "empty")],
    "32_no_final_newline_and_cut_line.jsonl": [(3, "", "cut off")],
    "33_duplicate_keys.jsonl": [(1, "response", "stands twice in one object")],
}
