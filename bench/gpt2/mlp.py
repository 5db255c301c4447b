"""The perceptron of examples/mlp.blu in PyTorch, with that file's names for its weights."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class MLP(nn.Module):
    recipe = {"betas": (0.9, 0.99), "weight_decay": 0.01}  # where it is not GPT-2's

    def __init__(self, vocabulary=256, window=8, embedding=32, hidden=256):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, embedding)
        self.window_w, self.window_b = nn.Parameter(torch.empty(window, hidden, embedding)), nn.Parameter(torch.zeros(hidden))
        self.hidden, self.out = nn.Linear(hidden, hidden), nn.Linear(hidden, vocabulary)
        nn.init.normal_(self.embed.weight)
        nn.init.normal_(self.window_w, std=1 / math.sqrt(window * embedding))
        nn.init.normal_(self.hidden.weight, std=1 / math.sqrt(hidden))
        nn.init.normal_(self.out.weight, std=0.01)
        nn.init.zeros_(self.hidden.bias)
        nn.init.zeros_(self.out.bias)

    def forward(self, tokens, targets, reduction="mean"):
        e, s = self.embed(tokens), tokens.shape[1]
        h = F.linear(e, self.window_w[0], self.window_b)
        for i in range(1, len(self.window_w)):
            h = h + F.linear(F.pad(e[:, : s - i], (0, 0, i, 0)), self.window_w[i])
        g = F.gelu(self.hidden(F.gelu(h, approximate="tanh")), approximate="tanh")
        logits = self.out(g)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1).long(), reduction=reduction)
