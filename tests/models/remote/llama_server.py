"""A real OpenAI-compatible server in a process of its own: llama.cpp's, out of the wheel `xllamacpp`.

`python -m tests.models.remote.llama_server GGUF` prints its address and serves until its stdin ends.
"""

import sys

import xllamacpp

KEY, MODEL = "a-key", "smollm2"
CONTEXT = 2048


def main(weights: str) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.model_alias = {MODEL}
    params.api_keys = [KEY]
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel = CONTEXT, 1  # one slot: its cache of the last prompt saves most reading
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_threads_http = 4
    params.warmup, params.ui, params.cache_ram_mib = False, False, 0
    server = xllamacpp.Server(params)
    print(f"listening {server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
