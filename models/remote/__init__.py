"""Engine `remote`: a language model behind any OpenAI-compatible server (vLLM, SGLang, llama.cpp, hosted)."""
