"""Every question that the tabs can ask, by its name; `minigpt.ui.asking` reads and checks what comes with it."""

from minigpt.ui import comparing, heads, inside, mistakes, shapes, what_if
from minigpt.ui.asking import Answer

QUESTIONS: dict[str, Answer] = {
    "heads": heads.scored,
    "what_if": what_if.changed,
    "continuations": what_if.continued,
    "sweep": what_if.swept,
    "edge_sweep": what_if.edges_swept,
    "logit_terms": inside.logit_terms,
    "lens": inside.lens,
    "circuit": inside.circuit,
    "compare": comparing.compared,
    "flow": shapes.followed,
    "parameters": shapes.counted,
    "dropout": shapes.dropped,
    "mistakes": mistakes.mistakes,
}
