"""Models of many kinds train on CUDA tensors as they do on CPU tensors."""
import copy
import unittest

import torch
from torch import nn


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.cells = kind(6, 8, 2)
        self.head = nn.Linear(8, 3)

    def forward(self, values):
        return self.head(self.cells(values)[0].mean(0))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, values):
        return self.head(self.layer(values).mean(1))


def convolutional():
    return nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(6, 6, 3, groups=6), nn.GroupNorm(2, 6), nn.SiLU(), nn.Flatten(), nn.Linear(24, 3))


def dense():
    return nn.Sequential(nn.Linear(5, 16), nn.LayerNorm(16), nn.GELU(), nn.RMSNorm(16), nn.Linear(16, 3))


MODELS = {"dense": (dense, (4, 5)), "convolutional": (convolutional, (4, 3, 8, 8)),
          "lstm": (lambda: Recurrent(nn.LSTM), (5, 4, 6)), "gru": (lambda: Recurrent(nn.GRU), (5, 4, 6)),
          "attention": (Attention, (4, 7, 8))}
OPTIMIZERS = {"sgd": lambda of: torch.optim.SGD(of, lr=0.05, momentum=0.9),
              "adamw": lambda of: torch.optim.AdamW(of, lr=0.01),
              "fused adam": lambda of: torch.optim.Adam(of, lr=0.01, fused=True)}


def trained(model, optimizer, values, labels, device):
    model = copy.deepcopy(model).to(device)
    step = OPTIMIZERS[optimizer](model.parameters())
    for _ in range(4):
        loss = nn.functional.cross_entropy(model(values.to(device)), labels.to(device))
        step.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        step.step()
    return loss.item(), [one.detach().cpu() for one in model.parameters()]


class Models(unittest.TestCase):
    def test_train_as_on_the_processor(self):
        for kind, (make, shape) in MODELS.items():
            for optimizer in OPTIMIZERS:
                with self.subTest(model=kind, optimizer=optimizer):
                    torch.manual_seed(0)
                    model, values, labels = make(), torch.randn(shape), torch.tensor([0, 1, 2, 1])
                    expected = trained(model, optimizer, values, labels, "cpu")
                    actual = trained(model, optimizer, values, labels, "cuda")
                    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-4)

    def test_take_the_softmax_of_halves_in_the_wider_type(self):
        for softmax in (torch.softmax, torch.log_softmax):
            for kind in (torch.float16, torch.bfloat16):
                with self.subTest(softmax=softmax, kind=kind):
                    given = torch.linspace(-3, 3, 12, device="cuda").to(kind).reshape(3, 4).requires_grad_()
                    wide = given.detach().cpu().float().requires_grad_()
                    # With a type, PyTorch has one kernel for GPUs that converts as it goes.
                    result, wanted = softmax(given, 1, dtype=torch.float32), softmax(wide, 1)
                    self.assertEqual(result.dtype, torch.float32)
                    (result ** 2).sum().backward()
                    (wanted ** 2).sum().backward()
                    torch.testing.assert_close(result.cpu(), wanted)
                    self.assertEqual(given.grad.dtype, kind)
                    torch.testing.assert_close(given.grad.cpu(), wide.grad.to(kind))

    def test_multiply_into_a_wider_type(self):
        one, other = torch.ones(2, 3).half(), torch.full((3, 4), 2.0).half()
        product = torch.mm(one.cuda(), other.cuda(), out_dtype=torch.float32)
        self.assertEqual(product.dtype, torch.float32)
        torch.testing.assert_close(product.cpu(), torch.full((2, 4), 6.0))


if __name__ == "__main__":
    unittest.main()
