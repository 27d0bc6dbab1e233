"""A world in which everybody but grader B has left marks that stand nowhere else, and ways to look at it.

What B gets is compared between two states of the same world: the others have done nothing, or everything.
Each look is undone afterwards, so both start from the same rows.
"""
