"""Makes LLVM's lit run the golden tests: lit test/lit

The tests find bluc and blurun in bin/, and FileCheck, not, count and split-file where LLVM 22 is installed.
BLUTRAIN_LIT_PATH replaces these folders by others, BLUTRAIN_LIT_FEATURES what is found out about this machine, and
BLUTRAIN_LIT_OUTPUT the folder build/lit, where tests write.
"""

import os
import platform
import sys

import lit.formats

config.name = "blutrain"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".blu", ".test"]  # internal/litrun has the same list
config.excludes = ["Inputs", "Output"]
config.test_source_root = os.path.dirname(__file__)

root = os.path.dirname(os.path.dirname(config.test_source_root))
config.test_exec_root = os.environ.get(
    "BLUTRAIN_LIT_OUTPUT", os.path.join(root, "build", "lit")
)

folders = os.environ.get(
    "BLUTRAIN_LIT_PATH", os.pathsep.join([os.path.join(root, "bin"), "/usr/lib/llvm-22/bin"])
)
config.environment["PATH"] = os.pathsep.join([folders, os.environ["PATH"]])

# What REQUIRES, UNSUPPORTED and XFAIL can name.
if "BLUTRAIN_LIT_FEATURES" in os.environ:
    config.available_features.update(os.environ["BLUTRAIN_LIT_FEATURES"].split(","))
else:
    machine = platform.machine()
    config.available_features.add(sys.platform)
    config.available_features.add({"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine))
    for tool in ["mlir-opt", "opt", "llc"]:
        if lit.util.which(tool, config.environment["PATH"]):
            config.available_features.add(tool)
