"""The page: one file a part, all words in one file per language, one error boundary."""

import os

# Gradio reads this when it is imported; nothing may leave the machine before anyone asked.
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
