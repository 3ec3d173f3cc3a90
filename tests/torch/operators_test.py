"""PyTorch's own table of operators: each on CUDA tensors gives what it gives on CPU tensors."""
import unittest
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db

SAMPLES = 4  # of each operator
# They draw numbers, or leave memory as it was: shapes and types are compared.
OF_CHANCE = ("rand", "dropout", "normal", "bernoulli", "multinomial", "empty", "cauchy", "exponential", "geometric",
             "uniform", "rrelu", "fractional_max_pool")
# What PyTorch has no CUDA form of, or forbids for CUDA tensors.
NOT_FOR_CUDA = {"histogram", "histogramdd", "sparse.mm.reduce", "tensor_split", "to_sparse",
                "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu"}
# Samples are views that go beyond their own elements, which a copy on the device does not have.
BEYOND = {"as_strided.partial_views"}


def moved(value, device):
    if isinstance(value, torch.Tensor):
        copy = value.detach().to(device)
        return copy.requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(moved(one, device) for one in value)
    if isinstance(value, dict):
        return {name: moved(one, device) for name, one in value.items()}
    return torch.device(device) if isinstance(value, torch.device) else value


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [one for part in value for one in tensors(part)] if isinstance(value, (list, tuple)) else []


def name_of(op):
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def applied(op, sample, device):
    torch.manual_seed(0)
    options = moved(sample.kwargs, device)
    if "device" in options:
        options["device"] = device
    return tensors(op(moved(sample.input, device), *moved(sample.args, device), **options))


class Operators(unittest.TestCase):
    def compare(self, op, sample):
        try:
            expected = applied(op, sample, "cpu")
        except Exception:
            return False  # no sample for a processor
        actual = applied(op, sample, "cuda")
        torch.cuda.synchronize()
        self.assertEqual(len(actual), len(expected))
        for one, other in zip(actual, expected):
            self.assertEqual((one.shape, one.dtype), (other.shape, other.dtype))
            if one.is_cuda and other.layout == torch.strided and not any(word in op.name for word in OF_CHANCE):
                torch.testing.assert_close(one.cpu(), other, equal_nan=True, rtol=1e-3, atol=1e-4)
        return True

    def test_give_what_they_give_on_the_processor(self):
        warnings.simplefilter("ignore")
        compared = 0
        for op in op_db:
            if name_of(op) in NOT_FOR_CUDA | BEYOND:
                continue
            dtype = next((one for one in (torch.float32, torch.int64) if one in op.dtypes), None)
            if dtype is None:
                continue
            for sample in list(op.sample_inputs("cpu", dtype))[:SAMPLES]:
                with self.subTest(op=name_of(op)):
                    compared += self.compare(op, sample)
        self.assertGreater(compared, 2000)

    def test_without_a_form_for_the_processor_are_named(self):
        tensor = torch.zeros(1, device="cuda")
        with self.assertRaisesRegex(NotImplementedError, "aten::_flash_attention_forward has no form"):
            torch.ops.aten._flash_attention_forward(tensor, tensor, tensor, None, None, 1, 1, 0., False, False)


if __name__ == "__main__":
    unittest.main()
