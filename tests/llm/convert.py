"""A GGUF file as the folder of weights, tokenizer and template that other servers read.

convert.py FOLDER_OF_GGUF FILE TEMPLATE FOLDER
"""

import pathlib
import shutil
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

source, file, template, folder = sys.argv[1:]
model = AutoModelForCausalLM.from_pretrained(source, gguf_file=file, dtype=torch.float32)
# The weights are plain numbers now, though the model remembers otherwise.
model.config.__dict__.pop("quantization_config", None)
model.hf_quantizer, model.is_quantized = None, False
model.save_pretrained(folder)
AutoTokenizer.from_pretrained(source, gguf_file=file).save_pretrained(folder)
shutil.copy(template, pathlib.Path(folder, "chat_template.jinja"))
