"""What a CUDA device means to PyTorch beside operators: seeds, streams, graphs, mixed precision, compiled models."""
import ctypes
import gc
import threading
import time
import unittest
import warnings

import torch
from tutti.torch import capture, runtime

cudart = runtime.library()


class Randomness(unittest.TestCase):
    def test_repeats_for_a_seed_and_moves_on(self):
        torch.manual_seed(3)
        first = torch.randn(4, device="cuda")
        second = torch.randn(4, device="cuda")
        torch.manual_seed(3)
        self.assertTrue(torch.equal(torch.randn(4, device="cuda"), first))
        self.assertTrue(torch.equal(torch.randn(4, device="cuda"), second))
        self.assertFalse(torch.equal(first, second))

    def test_goes_on_from_a_state_that_was_kept(self):
        state = torch.cuda.get_rng_state()
        first = torch.rand(4, device="cuda")
        torch.cuda.set_rng_state(state)
        self.assertTrue(torch.equal(torch.rand(4, device="cuda"), first))

    def test_of_generators_is_their_own(self):
        one = torch.Generator("cuda").manual_seed(1)
        other = torch.Generator("cuda").manual_seed(1)
        torch.rand(3, device="cuda")
        self.assertTrue(torch.equal(torch.rand(3, device="cuda", generator=one),
                                    torch.rand(3, device="cuda", generator=other)))

    def test_leaves_out_as_many_as_asked_for(self):
        kept = torch.nn.functional.dropout(torch.ones(100_000, device="cuda"), 0.25)
        self.assertAlmostEqual((kept != 0).float().mean().item(), 0.75, delta=0.01)


class Streams(unittest.TestCase):
    def test_order_operators_among_copies(self):
        stream = torch.cuda.Stream()
        source = torch.zeros(1 << 20).pin_memory()
        with torch.cuda.stream(stream):
            for value in range(5):
                target = torch.empty(1 << 20, device="cuda")
                target.copy_(source, non_blocking=True)
                target.add_(value)
                source.copy_(target, non_blocking=True)
        stream.synchronize()
        self.assertEqual(source[0].item(), 10)

    def test_are_those_of_the_tensors_device_whichever_is_current(self):
        begun = threading.Event()

        @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        def count_up(target):
            begun.wait(10)
            time.sleep(0.05)  # time enough for an operator that does not wait
            ctypes.c_int.from_address(target).value += 1

        for stream in (torch.cuda.default_stream(1), torch.cuda.Stream(1)):
            with self.subTest(stream=stream), torch.cuda.stream(stream):
                target = torch.zeros(1, dtype=torch.int32, device="cuda")
                begun.clear()
                self.assertEqual(cudart.cudaLaunchHostFunc(ctypes.c_void_p(stream.cuda_stream), count_up,
                                                           ctypes.c_void_p(target.data_ptr())), 0)
                with torch.cuda.device(0):
                    begun.set()
                    self.assertEqual((target + 10).item(), 11)

    def test_of_another_device_capture_what_runs_there(self):
        with torch.cuda.device(1):
            value = torch.ones(4, device="cuda")
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=torch.cuda.Stream()), torch.cuda.device(0):
                doubled = value * 2
            value.fill_(3)
            graph.replay()
            torch.cuda.synchronize()
        self.assertEqual(doubled.tolist(), [6] * 4)

    def test_wait_for_events_of_others(self):
        first, second = torch.cuda.Stream(), torch.cuda.Stream()
        with torch.cuda.stream(first):
            value = torch.full((4,), 2.0, device="cuda")
            done = first.record_event()
        second.wait_event(done)
        with torch.cuda.stream(second):
            result = value * 3
        second.synchronize()
        self.assertEqual(result.tolist(), [6.0] * 4)


class Graphs(unittest.TestCase):
    def test_repeat_what_was_captured(self):
        state = torch.zeros(4, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = state * 2 + 1
            state.add_(1)
        self.assertEqual(state.tolist(), [0.0] * 4, "nothing runs at capture")
        for replay in range(3):
            graph.replay()
            torch.cuda.synchronize()
            self.assertEqual(result.tolist(), [2.0 * replay + 1] * 4)
            self.assertEqual(state.tolist(), [replay + 1.0] * 4)

    def test_give_back_what_they_kept(self):
        gc.collect()
        before = len(capture._alive)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            torch.zeros(4, device="cuda").add_(1)
        self.assertGreater(len(capture._alive), before)
        graph.reset()
        del graph
        gc.collect()
        end = time.monotonic() + 30  # the driver gives it back when it comes to it, on a thread of its own
        while len(capture._alive) > before and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual(len(capture._alive), before)

    def test_draw_other_numbers_at_each_replay(self):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            drawn = torch.rand(8, device="cuda")
        seen = []
        for _ in range(2):
            graph.replay()
            torch.cuda.synchronize()
            seen.append(drawn.tolist())
        self.assertNotEqual(*seen)

    def test_draw_from_a_generator_of_their_own(self):
        drawn = torch.zeros(40, device="cuda")
        mine = torch.Generator(device="cuda").manual_seed(7)
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(mine)
        with torch.cuda.graph(graph):
            for one in drawn.split(1):  # more often than there are streams to ask under
                one.uniform_(generator=mine)
        graph.replay()
        torch.cuda.synchronize()
        self.assertEqual(len(set(drawn.tolist())), 40)


class Profiles(unittest.TestCase):
    def test_have_operators_and_no_kernels(self):
        from torch.profiler import ProfilerActivity, profile

        value = torch.ones(8, device="cuda")
        for _ in range(2):
            with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=True) as seen:
                value = value + 1
                torch.cuda.synchronize()
            self.assertIn("aten::add", [event.key for event in seen.key_averages()])
            self.assertFalse([event for event in seen.events() if event.device_type == torch.autograd.DeviceType.CUDA])
        self.assertEqual(value.tolist(), [3.0] * 8)


class Devices(unittest.TestCase):
    def test_are_counted_and_named_by_nvml_as_by_cuda(self):
        self.assertEqual(torch.cuda._device_count_nvml(), torch.cuda.device_count())
        named = torch.cuda._raw_device_uuid_nvml()
        self.assertEqual(named[0], f"GPU-{torch.cuda.get_device_properties(0).uuid}")


class Precision(unittest.TestCase):
    def test_is_mixed_where_asked_for(self):
        model = torch.nn.Linear(8, 4).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
        before = model.weight.detach().cpu().clone()
        with torch.autocast("cuda", dtype=torch.float16):
            result = model(torch.ones(2, 8, device="cuda"))
        self.assertEqual(result.dtype, torch.float16)
        scaler.scale(result.float().sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        torch.testing.assert_close(model.weight.detach().cpu(), before - 0.2, rtol=1e-2, atol=1e-3)


class Compiled(unittest.TestCase):
    def test_models_run_as_they_are_with_one_warning(self):
        model = torch.nn.Linear(2, 2).cuda()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            self.assertIs(torch.compile(model), model)

            @torch.compile(dynamic=True)
            def twice(value):
                return value + value

        self.assertEqual(len([one for one in said if "torch.compile" in str(one.message)]), 1)
        self.assertEqual(twice(torch.ones(2, device="cuda")).tolist(), [2.0, 2.0])


if __name__ == "__main__":
    unittest.main()
