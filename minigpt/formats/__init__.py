"""Models that other programs saved: found out by their content, read without running anything, and written.

| module | knows |
|---|---|
| `names` | what parameters and settings are called elsewhere, as tables |
| `files`, `pickles`, `torch_files`, `safetensors_files` | how a file is read that comes from a stranger |
| `stored` | a tensor that is still in its file |
| `containers`, `shards` | what one file holds, or several together |
| `translation`, `settings`, `vocabulary` | what the content means |
| `reading` | which of it applies |
| `filling` | how a model gets every parameter from a file |
| `hub` | what a model on the Hugging Face Hub consists of |
| `writing` | how our models are written for nanoGPT and for transformers |
"""
