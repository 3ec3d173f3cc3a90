"""Which operators go their way to the processor in C++ (python/tutti/torch/native.cc), and what happens where they cannot."""
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

import torch

from tutti.torch import operators, runtime

PROGRAM = """
import torch
import tutti.torch
ones = torch.ones(3, device="cuda")
print("sum", int((ones + ones).sum()))
"""
SLOWER = "slower way through Python"


def started(folder, **environment):
    """A process that adds two tensors, with an empty cache of its own."""
    return subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=dict(os.environ, XDG_CACHE_HOME=folder, **environment))


def said(process):
    text, _ = process.communicate(timeout=400)
    return text


class InPython:
    """Counts the calls that Python carries out."""

    def __enter__(self):
        self.count, self.known = 0, operators.HostOperator.__call__

        def counted(operator, *args, **kwargs):
            self.count += 1
            return self.known(operator, *args, **kwargs)

        operators.HostOperator.__call__ = counted
        return self

    def __exit__(self, *_):
        operators.HostOperator.__call__ = self.known


class Native(unittest.TestCase):
    def setUp(self):
        if os.environ.get("TUTTI_TORCH_NATIVE") == "0":
            self.skipTest("switched off")

    def test_plain_operators_do_not_enter_python(self):
        one, other = torch.ones(4, 4, device="cuda"), torch.full((4, 4), 2.0, device="cuda")
        with InPython() as python:
            total = one + other
            one.add_(other, alpha=2)
            product = one @ other
            torch.mul(one, other, out=total)
            picked = total[torch.tensor([0, 2], device="cuda")]
            joined = torch.cat([picked, picked])
            torch._foreach_mul_([one, other], 3)
        self.assertEqual(python.count, 0)
        self.assertEqual(product.cpu()[0, 0].item(), 40)
        self.assertEqual(joined.cpu().tolist(), [[10] * 4] * 4)
        self.assertEqual((one.cpu()[0, 0].item(), other.cpu()[0, 0].item()), (15, 6))

    def test_what_an_operator_returns_is_the_argument_that_it_wrote(self):
        one = torch.ones(4, device="cuda")
        out = torch.empty(4, device="cuda")
        largest, places = torch.empty((), device="cuda"), torch.empty((), device="cuda", dtype=torch.int64)
        with InPython() as python:
            self.assertIs(torch.ops.aten.add.out(one, one, out=out), out)
            self.assertIs(torch.ops.aten.add_.Tensor(one, one), one)
            found = torch.ops.aten.max.dim_max(out, 0, max=largest, max_values=places)
        self.assertEqual(python.count, 0)
        self.assertIs(found[0], largest)
        self.assertIs(found[1], places)
        self.assertEqual((one.cpu().tolist(), out.cpu().tolist(), largest.item()), ([2] * 4, [2] * 4, 2))

    def test_operators_see_which_arguments_overlap(self):
        values = torch.arange(6.0, device="cuda")
        with self.assertRaisesRegex(RuntimeError, "overlap|unsupported operation"):
            torch.add(values[1:], 1, out=values[:-1])

    def test_an_output_without_elements_is_made_as_large_as_it_must_be(self):
        out = torch.empty(0, device="cuda")
        with InPython() as python:
            torch.add(torch.ones(3, device="cuda"), 1, out=out)
        self.assertEqual(python.count, 1)
        self.assertEqual(out.cpu().tolist(), [2, 2, 2])

    def test_an_output_of_another_size_that_fits_becomes_as_large_as_it_must_be(self):
        for in_python in (False, True):  # where another output is empty
            out = torch.full((6,), 9.0, device="cuda")
            empty = torch.empty(0, dtype=torch.int64, device="cuda")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch says that it resizes
                if in_python:
                    torch.max(torch.tensor([[1.0, 5.0], [7.0, 2.0]], device="cuda"), 1, out=(out, empty))
                else:
                    torch.add(torch.tensor([4.0, 6.0], device="cuda"), 1, out=out)
            self.assertEqual(out.cpu().tolist(), [5, 7])

    def test_an_output_that_is_resized_has_the_strides_of_its_result(self):
        values = torch.arange(6.0).reshape(2, 3)
        turned = values.cuda().t()
        for way in ("native", "python", "captured", "captured empty"):
            out = torch.full((0 if way == "captured empty" else 10,), 9.0, device="cuda")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch says that it resizes
                if way == "native":
                    torch.add(turned, 1, out=out)
                elif way == "python":
                    torch.sort(turned, 1, out=(out, torch.empty(0, dtype=torch.int64, device="cuda")))
                    out += 1
                else:
                    graph = torch.cuda.CUDAGraph()
                    with torch.cuda.graph(graph):
                        torch.add(turned, 1, out=out)
                    out.fill_(0)
                    graph.replay()
                    torch.cuda.synchronize()
            self.assertEqual(out.cpu().tolist(), (values.t() + 1).tolist(), way)

    def test_an_output_that_is_too_small_is_refused_in_a_graph_as_well(self):
        out = torch.zeros(2, device="cuda")
        with self.assertRaisesRegex(RuntimeError, "storage"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                torch.add(torch.ones(3, device="cuda"), 1, out=out)

    def test_kernels_of_another_backend_are_not_taken_for_those_in_python(self):
        other = torch.library.Library("aten", "IMPL")
        other.impl("max.dim_max", lambda *_, **__: self.fail("another backend's kernel"), "PrivateUse1")
        try:
            largest, places = torch.empty(0, device="cuda"), torch.empty(0, dtype=torch.int64, device="cuda")
            torch.max(torch.tensor([[1.0, 5.0], [7.0, 2.0]], device="cuda"), 1, out=(largest, places))
        finally:
            other._destroy()
        self.assertEqual((largest.cpu().tolist(), places.cpu().tolist()), ([5, 7], [1, 0]))

    def test_lazy_conjugates_and_strides_are_kept(self):
        values = torch.tensor([[1 + 2j, 3 - 1j], [0 + 1j, 2 + 0j]], device="cuda")
        self.assertEqual((values.conj() @ values.t()).cpu().tolist(), (values.cpu().conj() @ values.cpu().t()).tolist())
        turned = torch.randn(3, 5, device="cuda").t()
        self.assertEqual((turned * 2).stride(), turned.stride())

    def test_an_operator_waits_for_the_streams_earlier_work(self):
        begun = threading.Event()

        @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        def count_up(place):  # which needs the interpreter's lock
            begun.wait(60)
            time.sleep(0.05)  # time enough for an operator that does not wait
            ctypes.c_int.from_address(place).value += 1

        values = torch.zeros(1, dtype=torch.int32, device="cuda")
        stream = torch.cuda.current_stream().cuda_stream
        self.assertEqual(runtime.library().cudaLaunchHostFunc(ctypes.c_void_p(stream), count_up,
                                                              ctypes.c_void_p(values.data_ptr())), 0)
        with InPython() as python:
            begun.set()
            total = values + 10
        self.assertEqual(python.count, 0)
        self.assertEqual(total.item(), 11)

    def test_in_a_captured_graph_each_replay_repeats(self):
        values = torch.ones(4, device="cuda")
        total = torch.zeros(4, device="cuda")
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            total += values * 2
        for _ in range(3):
            graph.replay()
        torch.cuda.synchronize()
        self.assertEqual(total.cpu().tolist(), [6] * 4)

    def test_an_error_of_the_operator_is_raised(self):
        with self.assertRaisesRegex(RuntimeError, "shapes cannot be multiplied"):
            torch.ones(2, 3, device="cuda") @ torch.ones(2, 3, device="cuda")


class Compiling(unittest.TestCase):
    def test_processes_that_begin_together_compile_once(self):
        with tempfile.TemporaryDirectory() as folder:
            texts = [said(one) for one in [started(folder) for _ in range(3)]]
            self.assertEqual(len(list(pathlib.Path(folder, "tutti").glob("operators-*.so"))), 1)
        for text in texts:
            self.assertIn("sum 6\n", text)
            self.assertNotIn(SLOWER, text)
        self.assertEqual(sum(text.count("compiling the operators") for text in texts), 1, texts)

    def test_without_a_compiler_operators_go_through_python_and_a_warning_says_why(self):
        with tempfile.TemporaryDirectory() as folder:
            texts = [said(started(folder, CXX="false")) for _ in range(2)]
        for text in texts:
            self.assertIn("sum 6\n", text)
            self.assertEqual(text.count(SLOWER), 1, text)
        self.assertEqual([text.count("compiling the operators") for text in texts], [1, 0], texts)

    def test_switched_off_nothing_is_compiled_or_said(self):
        with tempfile.TemporaryDirectory() as folder:
            text = said(started(folder, TUTTI_TORCH_NATIVE="0"))
            self.assertFalse(pathlib.Path(folder, "tutti").exists())
        self.assertIn("sum 6\n", text)
        self.assertNotIn(SLOWER, text)


if __name__ == "__main__":
    unittest.main()
