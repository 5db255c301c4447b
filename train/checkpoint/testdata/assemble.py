"""Reads a checkpoint with the safetensors package and prints each tensor, whole, as one JSON object."""
import json
import sys

import numpy
from safetensors.numpy import load_file

folder = sys.argv[1]
manifest = json.load(open(f"{folder}/manifest.json"))
files = {f["rank"]: load_file(f"{folder}/rank-{f['rank']:05d}.safetensors") for f in manifest["files"]}
tensors = {}
for t in manifest["tensors"]:
    pieces = [files[p["rank"]][t["name"]].reshape(-1) for p in t["pieces"]]
    tensors[t["name"]] = numpy.concatenate(pieces).reshape(t["shape"]).tolist()
json.dump(tensors, sys.stdout)
