# ruff: noqa: E501
"""The rubric an eval set starts with. Stored as version 1; a changed wording is a new version, never an edit."""

NAME = "Grounding and abstention"

DECISIONS = """\
1. Literal text. Judge what the passages say, word for word or by plain rewording. What a passage only hints at (implicature), what you know yourself and what is likely do not support a claim.
2. The passages are all there is. A claim that is true in the world but not in the passages served with this response is unsupported.
3. Half supported. When one part of a claim is supported and another is not, propose a split; do not choose the nearest label because most of the claim is right. Label the claim as a whole by its weakest part until the split is decided.
4. Contradicted beats unsupported. When a passage says something that cannot be true together with the claim, the label is contradicted, even if the rest of the claim is nowhere in the passages.
5. Numbers, dates, names and units are part of the claim. A rounded number is supported only where the claim says it is rounded ("about", "roughly").
6. Two passages that contradict each other: when one supports the claim and another contradicts it, the label is unverifiable; flag it.
7. Unverifiable is not "I am unsure". It means that the passages cannot decide it for anybody: the claim is a matter of taste, a statement about the response itself, too vague to check, or the passage is cut off or unreadable where it matters.
8. A claim about what the passages do not contain ("the document names no price") is checked like any other: supported when all passages are indeed silent.
9. A hedge is an answer. "It may be three days, but please check" asserts three days: ANSWERED.
10. A refusal that goes on to give advice, a guess or an invented procedure is ANSWERED, because the reader is left with an answer.
11. A false premise. Saying that the premise is not in the sources, and stopping, is REFUSED. Correcting the premise and then answering another question is ANSWERED.
12. A partial answer, part answered and part declined, is ANSWERED.
13. A pointer alone ("please contact support") after saying that the sources do not contain the answer is still REFUSED: it asserts nothing about the question.
14. A question back together with a complete answer is ANSWERED; CLARIFY asks instead of answering."""

DIMENSIONS = [
    {
        "name": "grounding",
        "target": "claim",
        "question": "Do the passages served with this response bear out this claim?",
        "labels": [
            {
                "name": "supported",
                "key": "1",
                "definition": "The passages say it, in these words or in plain rewording. Every part of the claim is there.",
                "examples": [
                    "Passage: “Returns are free within 30 days of delivery.” Claim: “You can send an item back at no cost for 30 days after it arrives.”",
                    "Passage: “The pass covers zones 1 to 3; children under six travel free.” Claim: “A four-year-old needs no ticket.”",
                ],
            },
            {
                "name": "contradicted",
                "key": "2",
                "definition": "The passages say something that cannot be true together with the claim.",
                "examples": [
                    "Passage: “Norway and Finland take three working days.” Claim: “Parcels to Norway arrive within two working days.”",
                    "Passage: “The refund goes to the card used for payment.” Claim: “You may choose a voucher or your bank account for the refund.”",
                ],
            },
            {
                "name": "unsupported",
                "key": "3",
                "definition": "The passages neither say it nor rule it out. True in the world but not in the passages belongs here.",
                "examples": [
                    "Passage: “The counter accepts parcels until 17:00.” Claim: “The counter also sells packing material.”",
                    "Passage: “The reactor was shut down in 1999.” Claim: “The reactor was shut down in 1999 because of rising costs.” (The reason is nowhere: better still, propose a split.)",
                ],
            },
            {
                "name": "unverifiable",
                "key": "4",
                "definition": "The source is not enough to decide for anybody: a matter of taste, too vague to check, about the response itself, or the passage is cut off, unreadable or at odds with another one.",
                "examples": [
                    "Passage: “The hotel has 40 rooms and a garden.” Claim: “The hotel is charming.”",
                    "Passage 1: “Opening hours: 9 to 17.” Passage 2: “We open at 10.” Claim: “The office opens at 9.”",
                ],
            },
        ],
    },
    {
        "name": "abstention",
        "target": "response",
        "question": "What does the response as a whole do with the question?",
        "labels": [
            {
                "name": "REFUSED",
                "key": "1",
                "definition": "Says that the sources do not contain the answer (or that it may not or cannot answer), and stops. Also: says that the premise of the question is not in the sources, and stops.",
                "examples": [
                    "Question: “What does the premium plan cost in Japan?” Response: “The documents list prices for Europe only; I cannot tell you the price in Japan.”",
                    "Question: “Why was the 2019 recall of model K called off?” Response: “The documents mention no recall of model K in 2019.”",
                ],
            },
            {
                "name": "ANSWERED",
                "key": "2",
                "definition": "Asserts an answer, hedged or not, whole or in part. Also a refusal that then advises, guesses or invents a procedure.",
                "examples": [
                    "Question: “How long does a visa take?” Response: “It is usually about ten days, though I am not certain.”",
                    "Question: “Can I wash the filter?” Response: “The manual does not say. In general, rinse it with lukewarm water and let it dry for a day.”",
                ],
            },
            {
                "name": "CLARIFY",
                "key": "3",
                "definition": "Asks for more instead of answering.",
                "examples": [
                    "Question: “What is the limit?” Response: “Do you mean the limit for a transfer or for a cash withdrawal?”",
                    "Question: “Does it fit my car?” Response: “Which model and year do you drive?”",
                ],
            },
        ],
    },
]
