"""The specification of minigpt, as tests."""
