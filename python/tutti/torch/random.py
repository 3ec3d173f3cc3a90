"""Random numbers: each operator draws from a generator of the processor that the CUDA generator's state determines.

So `torch.manual_seed`, saved and restored states, and forked generators mean what they mean on a GPU, though the numbers
are others. An operator moves the CUDA generator's offset on, as a kernel does.
"""
import itertools

import torch

_OFFSET = 4  # of which CUDA generators count
_replays = itertools.count()


def _mixed(seed, place):
    return (seed * 0x9E3779B97F4A7C15 + place * 0xBF58476D1CE4E5B9 + 1) & 0x7FFFFFFFFFFFFFFF


def host_generator(generator, device):
    """A CPU generator for one operator; `generator`: as the operator was given it, None for the device's default."""
    if generator is None:
        generator = torch.cuda.default_generators[device.index]
    if generator.device.type != "cuda":
        return generator
    offset = generator.get_offset()
    generator.set_offset(offset + _OFFSET)
    return torch.Generator().manual_seed(_mixed(generator.initial_seed(), offset))


def captured_seed(generator, device):
    """The seed of a generator, as for host_generator(), while the current stream is captured. PyTorch up to 2.10 tells
    no seeds then, but under another stream that is not. Streams come in turn from 32 that there are."""
    if generator is None:
        generator = torch.cuda.default_generators[device.index]
    for _ in range(33):
        with torch.cuda.stream(torch.cuda.Stream(device)):
            if not torch.cuda.is_current_stream_capturing():
                return generator.initial_seed()
    raise RuntimeError(f"tutti.torch: all streams of {device} are captured, so its generator does not say its seed")


def replay_generator(seed):
    """The same for an operator in a captured graph: other numbers at each replay."""
    return torch.Generator().manual_seed(_mixed(seed, next(_replays)))
