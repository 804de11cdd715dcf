"""From text to terms: words, folding of case and accents, stemming; what indexes and queries share.

Nothing here knows postings or scores. A change of what a text becomes is a change of
`analyzer.VERSION`, because segments that were built before hold other terms.
"""
