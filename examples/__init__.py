"""Causal evidence in Python, one question a script; `python -m examples.find_the_induction_head` and so on."""
