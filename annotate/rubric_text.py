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

# Known cases, each explained: what graders and judges are tried on before they count. The claim is empty where
# the dimension asks of the whole response.
WARM_UP_CASES = [
    {
        "dimension": "abstention",
        "question": "How long does it take to renew a library card?",
        "passages": [
            "Cards are renewed at the desk. Please bring a document that shows your address.",
            "The library is closed on public holidays.",
        ],
        "response": "I am not entirely sure, but it probably takes about a week; you may want to check with the desk.",
        "claim": "",
        "label": "ANSWERED",
        "explanation": "A hedge is an answer. The reader is left with “about a week”, however carefully it is put.",
    },
    {
        "dimension": "abstention",
        "question": "May I store paint in the cellar of the house?",
        "passages": [
            "House rules: bicycles belong in the bicycle room. The laundry room is locked at 22:00.",
        ],
        "response": "The house rules do not say anything about paint. It is best kept in a cool place away from the heating, with the lid closed.",
        "claim": "",
        "label": "ANSWERED",
        "explanation": "It begins as a refusal and then gives advice that no passage contains. A refusal stops; this one leaves the reader with something to do.",
    },
    {
        "dimension": "abstention",
        "question": "What does the ticket cost?",
        "passages": [
            "Day ticket: 8 euros. Month ticket: 54 euros. Bicycle ticket: 4 euros.",
        ],
        "response": "Do you mean the day ticket, the month ticket or the one for a bicycle?",
        "claim": "",
        "label": "CLARIFY",
        "explanation": "It asks for what is missing instead of answering. Had it listed the prices as well, it would be ANSWERED.",
    },
    {
        "dimension": "grounding",
        "question": "When was the observatory built, and why there?",
        "passages": [
            "The observatory on the hill was completed in 1887. Its first telescope is still in use.",
        ],
        "response": "The observatory was completed in 1887 because the hill has clear nights.",
        "claim": "The observatory was completed in 1887 because the hill has clear nights.",
        "label": "unsupported",
        "explanation": "Half supported: the year is in the passage, the reason is not. As a whole it is labelled by its weakest part, and a split is proposed.",
    },
    {
        "dimension": "abstention",
        "question": "Which year did the bakery on Mill Street win the national prize?",
        "passages": [
            "The bakery on Mill Street opened in 1996. It sells bread, cakes and, since 2015, ice cream.",
        ],
        "response": "The documents do not mention that the bakery on Mill Street won a national prize.",
        "claim": "",
        "label": "REFUSED",
        "explanation": "The question rests on a false premise. Saying that the premise is not in the sources, and stopping, is a refusal, and a good one.",
    },
    {
        "dimension": "grounding",
        "question": "How soon must a fault be reported?",
        "passages": [
            "Faults are reported within 14 days of delivery, by letter or e-mail.",
        ],
        "response": "You have 30 days after delivery to report a fault.",
        "claim": "You have 30 days after delivery to report a fault.",
        "label": "contradicted",
        "explanation": "The passage gives another number: both cannot be true. Unsupported would be right if the passages named no period at all.",
    },
    {
        "dimension": "grounding",
        "question": "Where does the river rise?",
        "passages": [
            "The Danube flows through ten countries. Its delta is home to more than 300 kinds of birds.",
        ],
        "response": "The Danube rises in the Black Forest.",
        "claim": "The Danube rises in the Black Forest.",
        "label": "unsupported",
        "explanation": "True in the world, but in none of these passages. Grounding asks what the passages say, not what you know.",
    },
    {
        "dimension": "grounding",
        "question": "What is the guest house like?",
        "passages": [
            "The guest house has six rooms and a terrace with a view of the lake.",
        ],
        "response": "The guest house has six rooms and is delightful.",
        "claim": "The guest house is delightful.",
        "label": "unverifiable",
        "explanation": "A matter of taste: no passage could decide it for everybody. Unverifiable does not mean “I am not sure”.",
    },
    {
        "dimension": "abstention",
        "question": "What are the opening hours and the entry fee of the garden?",
        "passages": [
            "The garden is open from April to October, daily from 9 to 18.",
        ],
        "response": "From April to October the garden is open daily from 9 to 18. The documents do not give the entry fee.",
        "claim": "",
        "label": "ANSWERED",
        "explanation": "A partial answer, part answered and part declined, is ANSWERED.",
    },
    {
        "dimension": "abstention",
        "question": "Can I pay by instalments?",
        "passages": [
            "We accept bank transfer and direct debit. Invoices are sent by e-mail.",
        ],
        "response": "The documents do not say whether you can pay by instalments. Please ask the accounts office.",
        "claim": "",
        "label": "REFUSED",
        "explanation": "It asserts nothing about the question. A pointer alone, after saying that the sources are silent, is still a refusal.",
    },
    {
        "dimension": "grounding",
        "question": "Is there parking at the station?",
        "passages": [
            "Parking spaces: 40, of which 2 are for disabled people. Free of charge for two hours.",
        ],
        "response": "Yes, you can park there at no cost for up to two hours.",
        "claim": "Parking is free for up to two hours.",
        "label": "supported",
        "explanation": "Plain rewording: “free of charge for two hours” and “free for up to two hours” say the same.",
    },
]
