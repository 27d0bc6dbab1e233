# ruff: noqa: E501
"""Optional dimensions, ready to be added to a rubric, and the bundles that a kind of system is graded with.

Data only. A preset is copied into a rubric version when it is added; from then on its wording is the lead's.
"""

from typing import Any

OPTIONAL_DIMENSIONS: list[dict[str, Any]] = [
    {
        "name": "hallucination_type",
        "target": "claim",
        "question": "What kind of hallucination is it, and how easily is it seen?",
        "asked_when": {"dimension": "grounding", "labels": ["contradicted", "unsupported"]},
        "labels": [
            {
                "name": "evident conflict",
                "key": "1",
                "definition": "The claim plainly contradicts a passage: a wrong number, name, date or a yes for a no. Seen at a glance once the passage is found.",
                "examples": [
                    "Passage: “The pool closes at 20:00.” Claim: “The pool is open until 22:00.”",
                    "Passage: “Pets are not admitted.” Claim: “Your dog may come along.”",
                ],
            },
            {
                "name": "subtle conflict",
                "key": "2",
                "definition": "The claim departs from a passage in a way that changes the meaning but is easily missed: a shifted degree, scope, cause or condition.",
                "examples": [
                    "Passage: “Most parcels arrive within two days.” Claim: “Parcels arrive within two days.”",
                    "Passage: “Members may apply for a refund.” Claim: “Members receive a refund.”",
                ],
            },
            {
                "name": "evident baseless info",
                "key": "3",
                "definition": "The claim adds something concrete that is in no passage: a fact, a figure, an event, a name.",
                "examples": [
                    "Passage: “The bridge was opened in 1931.” Claim: “The bridge was opened in 1931 by the mayor’s daughter.”",
                    "Passage: “The app runs on tablets.” Claim: “The app has two million users.”",
                ],
            },
            {
                "name": "subtle baseless info",
                "key": "4",
                "definition": "The claim goes a little beyond the passages: a plausible reason, judgement, feeling or generalisation that nothing there bears out.",
                "examples": [
                    "Passage: “The museum moved in 2004.” Claim: “The museum moved in 2004 to have more room.”",
                    "Passage: “Guests praised the breakfast.” Claim: “Guests are always delighted with the hotel.”",
                ],
            },
        ],
    },
    {
        "name": "decision_relevance",
        "target": "claim",
        "question": "Could this claim, if it were wrong, change what a reader does?",
        "asked_when": None,
        "labels": [
            {
                "name": "decision-relevant",
                "key": "1",
                "definition": "A reader could act on it: a price, a deadline, a dose, a permission, a step of a procedure, a condition.",
                "examples": [
                    "“The form must be handed in by 31 March.”",
                    "“Do not take the tablet together with milk.”",
                ],
            },
            {
                "name": "not decision-relevant",
                "key": "2",
                "definition": "Background, politeness or detail on which nobody would act.",
                "examples": [
                    "“The association was founded by three friends.”",
                    "“The manual has twelve chapters.”",
                ],
            },
        ],
    },
    {
        "name": "citation_recall",
        "target": "claim",
        "question": "Do the passages that this claim cites, taken together, bear out all of it?",
        "asked_when": None,
        "labels": [
            {
                "name": "fully supported",
                "key": "1",
                "definition": "The cited passages, read together and without any other, say everything that the claim says.",
                "examples": [
                    "Claim: “The tour lasts two hours and costs 15 euros [1][2].” Passage 1: “The tour takes two hours.” Passage 2: “Tour: 15 euros.”",
                    "Claim: “The lift is out of order [3].” Passage 3: “The lift cannot be used until further notice.”",
                ],
            },
            {
                "name": "not fully supported",
                "key": "2",
                "definition": "Some part is not in the cited passages, even if another passage says it. A claim that cites nothing belongs here.",
                "examples": [
                    "Claim: “The tour lasts two hours and costs 15 euros [1].” Passage 1: “The tour takes two hours.”",
                    "Claim without a citation: “The lift is out of order.”",
                ],
            },
        ],
    },
    {
        "name": "citation_support",
        "target": "citation",
        "question": "How much of this claim does this one cited passage support by itself?",
        "asked_when": None,
        "labels": [
            {
                "name": "full support",
                "key": "1",
                "definition": "This passage alone says everything that the claim says.",
                "examples": [
                    "Claim: “Entry is free on Sundays.” Passage: “On Sundays no entry fee is charged.”",
                    "Claim: “The seat holds up to 18 kg.” Passage: “Suitable for children of up to 18 kg.”",
                ],
            },
            {
                "name": "partial support",
                "key": "2",
                "definition": "This passage says a part of the claim; the rest has to come from elsewhere.",
                "examples": [
                    "Claim: “Entry is free on Sundays for residents.” Passage: “On Sundays no entry fee is charged.”",
                    "Claim: “The seat holds up to 18 kg and fits every car.” Passage: “Suitable for children of up to 18 kg.”",
                ],
            },
            {
                "name": "no support",
                "key": "3",
                "definition": "This passage says no part of the claim, or contradicts it. Being about the same subject is no support.",
                "examples": [
                    "Claim: “Entry is free on Sundays.” Passage: “The museum opens at ten.”",
                    "Claim: “The seat holds up to 18 kg.” Passage: “Suitable for children of up to 15 kg.”",
                ],
            },
        ],
    },
    {
        "name": "refusal_informativeness",
        "target": "response",
        "question": "Does the refusal tell the reader why there is no answer, or where to go from here?",
        "asked_when": {"dimension": "abstention", "labels": ["REFUSED"]},
        "labels": [
            {
                "name": "informative",
                "key": "1",
                "definition": "It says what is missing or why (not in these documents, the premise is not there, older than the question), or points to where the answer may be found. A corrected premise is informative.",
                "examples": [
                    "“The documents cover the years up to 2022; they do not say what the fee is now.”",
                    "“The handbook mentions no branch in Oslo. The list of branches is on page 4.”",
                ],
            },
            {
                "name": "uninformative",
                "key": "2",
                "definition": "It declines, and that is all.",
                "examples": ["“I cannot help with that.”", "“Sorry, no answer was found.”"],
            },
        ],
    },
    {
        "name": "correctness",
        "target": "response",
        "question": "Is the answer right: factually, and to the question that was asked?",
        "asked_when": {"dimension": "abstention", "labels": ["ANSWERED"]},
        "labels": [
            {
                "name": "correct",
                "key": "1",
                "definition": "What it asserts is true and it answers the question. An answer that is right but short is correct.",
                "examples": [
                    "Question: “When does the bath open?” Reference: “At 7, on Sundays at 9.” Response: “It opens at 7; on Sundays at 9.”",
                    "Question: “Is a permit needed?” Reference: “Yes, above two metres.” Response: “Yes, for anything higher than two metres.”",
                ],
            },
            {
                "name": "incorrect",
                "key": "2",
                "definition": "Something it asserts about the question is false, or it answers another question.",
                "examples": [
                    "Question: “When does the bath open?” Reference: “At 7, on Sundays at 9.” Response: “It opens at 7 every day.”",
                    "Question: “Is a permit needed?” Response: “A permit costs 40 euros.”",
                ],
            },
        ],
    },
    {
        "name": "groundedness",
        "target": "response",
        "question": "Do the sources that the response relies on bear out what it says?",
        "asked_when": {"dimension": "abstention", "labels": ["ANSWERED"]},
        "labels": [
            {
                "name": "grounded",
                "key": "1",
                "definition": "Its key statements are borne out by the passages it cites (by the passages served, where it cites none).",
                "examples": [
                    "“It opens at 7 [1].” Passage 1: “Opening hours: from 7:00.”",
                    "“The warranty lasts two years [2].” Passage 2: “We guarantee the device for 24 months.”",
                ],
            },
            {
                "name": "misgrounded",
                "key": "2",
                "definition": "It cites a passage for a key statement, and that passage does not bear it out.",
                "examples": [
                    "“It opens at 7 [1].” Passage 1: “Swimming lessons take place on Mondays.”",
                    "“The warranty lasts two years [2].” Passage 2: “The warranty lasts one year.”",
                ],
            },
            {
                "name": "ungrounded",
                "key": "3",
                "definition": "A key statement rests on no source at all: nothing is cited for it and no passage says it.",
                "examples": [
                    "“It opens at 7.” No passage speaks of opening hours.",
                    "“The warranty lasts two years.” The passages describe the packaging only.",
                ],
            },
        ],
    },
    {
        "name": "context_relevance",
        "target": "passage",
        "question": "Does this passage help to answer the question?",
        "asked_when": None,
        "labels": [
            {
                "name": "relevant",
                "key": "1",
                "definition": "It contains something that an answer to this question needs, whether or not the response used it.",
                "examples": [
                    "Question: “When does the bath open?” Passage: “Opening hours: from 7:00.”",
                    "Question: “Is a permit needed?” Passage: “Sheds above two metres require a permit.”",
                ],
            },
            {
                "name": "irrelevant",
                "key": "2",
                "definition": "It contains nothing that an answer needs. The same subject alone does not make it relevant.",
                "examples": [
                    "Question: “When does the bath open?” Passage: “The bath was renovated in 2015.”",
                    "Question: “Is a permit needed?” Passage: “Our office sells garden sheds.”",
                ],
            },
        ],
    },
]
DIMENSION_OF = {dimension["name"]: dimension for dimension in OPTIONAL_DIMENSIONS}

# What a kind of system is graded with, beyond grounding and abstention.
BUNDLES = {
    "rag_harness": ("refusal_informativeness", "context_relevance"),
    "abstention_matrix": ("refusal_informativeness",),
    "hallucination_rate": ("decision_relevance", "hallucination_type"),
    "document_qa": (
        "hallucination_type",
        "citation_recall",
        "citation_support",
        "correctness",
        "groundedness",
        "context_relevance",
    ),
    "refusal_checker": ("refusal_informativeness", "correctness"),
}
