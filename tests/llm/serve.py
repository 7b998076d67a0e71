"""llama.cpp's own HTTP server with a small model, on loopback, until it is killed.

serve.py MODEL TEMPLATE PORT [TOKENS OF CONTEXT]
"""

import signal
import sys

import xllamacpp

model, template, port, *context = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path = model
params.model_alias = {"smollm2"}
params.hostnames = ["127.0.0.1"]
params.port = int(port)
params.n_ctx = int(context[0]) if context else 4096
params.n_parallel = 1
# One thread is faster than two on two shared cores.
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.use_jinja = True
with open(template, encoding="utf-8") as file:
    params.chat_template = file.read()
server = xllamacpp.Server(params)
print("listening on", server.listening_address, flush=True)
signal.pause()
