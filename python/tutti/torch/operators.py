"""Which ATen operators run on the processor, and how a call becomes one of CPU tensors."""
import functools
import warnings

import torch

from tutti.torch import capture, composed, native, streams
from tutti.torch.memory import HOST, host_view, on_device, replace
from tutti.torch.random import captured_seed, host_generator, replay_generator

# No kernel runs in these: they allocate, make views, copy bytes or ask.
_AS_THEY_ARE = {
    "aten::empty.memory_format", "aten::empty_strided", "aten::as_strided", "aten::resize_", "aten::_reshape_alias",
    "aten::record_stream", "aten::is_pinned", "aten::_pin_memory", "aten::is_set_to", "aten::_local_scalar_dense",
    "aten::_efficientzerotensor", "aten::set_", "aten::set_.source_Storage", "aten::set_.source_Storage_storage_offset",
    "aten::set_.source_Tensor",
}
# PyTorch has no CUDA kernel under these names: it chooses one inside, from libraries of kernels.
_CHOSEN_INSIDE = ("aten::convolution", "aten::convolution_backward", "aten::copy_")
_libraries = []  # PyTorch takes kernels back when the Library that has registered them is collected


def _wrapped(number, others):
    """A number as a tensor that leaves the type of the result to the tensors beside it, as PyTorch's own does."""
    kind = torch.tensor(number, device=HOST)
    for one in others:
        if isinstance(one, torch.Tensor) and _category(one.dtype) == _category(kind.dtype):
            return kind.to(one.dtype)
    return kind


def _category(dtype):
    return dtype == torch.bool, dtype.is_floating_point, dtype.is_complex


def register():
    """Puts a kernel for CUDA tensors in place of PyTorch's for every operator of whom that can be said."""
    library = torch.library.Library("aten", "IMPL")
    _libraries.append(library)  # what has been put in place stays, whatever happens to the rest
    compiled = native.load()
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    runs_on = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    for name in torch._C._dispatch_get_all_op_names():
        if not name.startswith("aten::") or name in _AS_THEY_ARE:
            continue
        if not has_kernel(name, "CUDA") and name not in _CHOSEN_INSIDE:
            continue
        op = _overload(name)
        if op is None or _makes_views(op._schema):
            continue
        own = composed.KERNELS.get(name)
        kernel = own or (HostOperator(op) if runs_on(name, "CPU") else _refusal(name))
        if name in composed.AROUND:
            kernel = functools.partial(composed.AROUND[name], kernel)
        short = name.removeprefix("aten::")
        native_too = compiled is not None and isinstance(kernel, HostOperator) and kernel.random is None
        with warnings.catch_warnings():
            # Some versions of PyTorch tell of the first kernel that takes another one's place, as all of these do.
            warnings.filterwarnings("ignore", "(?s).*Overriding a previously registered kernel")
            # native.cc looks for those in Python under a key that no tensor has.
            library.impl(short, kernel, "PrivateUse3" if native_too else "CUDA", allow_override=True)
        if native_too:
            compiled.implement(op._schema.name.removeprefix("aten::"), op._schema.overload_name)


def _overload(name):
    base, _, overload = name.removeprefix("aten::").partition(".")
    packet = getattr(torch.ops.aten, base, None)
    return getattr(packet, overload or "default", None)


def _makes_views(schema):
    return any(one.alias_info is not None and not one.alias_info.is_write for one in schema.returns)


def _refusal(name):
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"{name} has no form for the processor, so it cannot run on tutti's software GPU")
    return refuse


class HostOperator:
    """An operator of CUDA tensors that runs on the processor, on their memory."""

    def __init__(self, op):
        self.op = op
        arguments = op._schema.arguments
        self.positional = [one.name for one in arguments if not one.kwarg_only]
        self.written = {one.name for one in arguments if one.alias_info is not None and one.alias_info.is_write}
        self.outputs = {one.name for one in arguments if one.kwarg_only and one.name in self.written}
        # Numbers that PyTorch has wrapped as tensors arrive as numbers.
        self.tensors = {one.name for one in arguments if str(one.type) in ("Tensor", "Optional[Tensor]")}
        self.random = next((one.name for one in arguments if one.name == "generator"), None)
        of_set = {frozenset(one.alias_info.before_set): one.name for one in arguments if one.name in self.written}
        # Per value that it returns: the argument that it is, or None for a new one.
        self.returned = [of_set.get(frozenset(one.alias_info.before_set)) if one.alias_info is not None else None
                         for one in op._schema.returns]

    def __call__(self, *args, **kwargs):
        given = dict(zip(self.positional, args), **kwargs)
        call = _Call()
        host = {name: call.host(value, name in self.outputs) for name, value in given.items()}
        for name in self.tensors & host.keys():
            if isinstance(host[name], (bool, int, float, complex)):
                host[name] = _wrapped(host[name], host.values())
        device = call.device or torch.device("cuda", torch.cuda.current_device())
        if device.index == torch._C._cuda_getDevice():
            return self._on(device, call, given, host)
        with torch.cuda.device(device):  # whose current stream is the one that counts
            return self._on(device, call, given, host)

    def _on(self, device, call, given, host):
        if torch.cuda.is_current_stream_capturing():
            return self._captured(given, host, device)
        # The stream's earlier work comes first, and so does that of other devices whose memory is used.
        for one in call.devices or (device,):
            streams.finish(one.index)
        if self.random is not None:
            host[self.random] = host_generator(given.get(self.random), device)
        result = self._run(host)
        for tensor, values in call.unsized:
            replace(tensor, values)
        for name in self.outputs & given.keys():
            call.resized(given[name])
        return self._answer(result, given, device)

    def _run(self, host):
        args = []
        kwargs = dict(host)
        for name in self.positional:
            if name not in kwargs:
                break
            args.append(kwargs.pop(name))
        return self.op(*args, **kwargs)

    def _answer(self, result, given, device):
        """What the caller gets: the arguments that were written, and new CUDA tensors."""
        if len(self.returned) == 0:
            return None
        if len(self.returned) == 1:
            return given[self.returned[0]] if self.returned[0] is not None else _to_device(result, device)
        return tuple(_to_device(value, device) if name is None else given[name]
                     for name, value in zip(self.returned, result))

    def _captured(self, given, host, device):
        """Into the graph. Nothing that the call writes changes now: what it returns is made of copies."""
        seed = None
        if self.random is not None:
            seed = captured_seed(given.get(self.random), device)
            host[self.random] = replay_generator(seed)
        trial = {name: _copied(value) if name in self.written else value for name, value in host.items()}
        result = self._run(trial)
        for name in self.outputs & given.keys():
            if isinstance(given[name], torch.Tensor) and given[name].is_cuda:
                host[name] = _sized(given[name], trial[name], host[name])
        answer = self._answer(result, given, device)
        made = answer if isinstance(answer, tuple) and len(self.returned) > 1 else (answer,)
        into = [None if name is not None else _to_host(value) for name, value in zip(self.returned, made)]

        def repeat():
            if seed is not None:
                host[self.random] = replay_generator(seed)
            result = self._run(host)
            results = result if len(self.returned) > 1 else (result,)
            for place, value in zip(into, results):
                _copy_all(place, value)

        capture.add_node(repeat)
        return answer


class _Call:
    """One call's arguments on their way to the processor."""

    def __init__(self):
        self.device = None  # of the first CUDA tensor, or named by an argument: where results go
        self.devices = set()
        self.unsized = []  # outputs without elements yet, and the tensors that stand for them
        self._views = {}

    def host(self, value, is_output):
        if isinstance(value, torch.Tensor):
            return self._view(value, is_output) if value.is_cuda else value
        if isinstance(value, (list, tuple)) and any(isinstance(one, torch.Tensor) for one in value):
            return [self.host(one, is_output) for one in value]
        if isinstance(value, torch.device) and value.type == "cuda":
            index = value.index if value.index is not None else torch.cuda.current_device()
            self.device = self.device or torch.device("cuda", index)
            return HOST
        return value

    def resized(self, tensor):
        """An output of another size than its tensor has been given the right one, on the tensor's memory."""
        view = self._views.get(id(tensor))
        if view is not None and view.size() != tensor.size():
            tensor.as_strided_(view.size(), view.stride(), view.storage_offset())

    def _view(self, tensor, is_output):
        """The same for the same tensor: operators look whether arguments are one."""
        known = self._views.get(id(tensor))
        if known is not None:
            return known
        self.device = self.device or tensor.device
        self.devices.add(tensor.device)
        if is_output and tensor.numel() == 0:
            view = torch.empty(0, dtype=tensor.dtype, device=HOST)
            self.unsized.append((tensor, view))
        else:
            view = host_view(tensor)
        self._views[id(tensor)] = view
        return view


def _sized(tensor, result, view):
    """An output with the size of its result, which a graph that is captured will write; its view."""
    if result.size() == tensor.size():
        return view
    if tensor.numel() == 0:
        replace(tensor, result)
    else:
        tensor.as_strided_(result.size(), result.stride(), tensor.storage_offset())
    return host_view(tensor)


def _to_device(value, device):
    if isinstance(value, torch.Tensor):
        return on_device(value, device) if value.device.type == "cpu" else value
    if isinstance(value, (list, tuple)):
        return [_to_device(one, device) for one in value]
    return value


def _to_host(value):
    if isinstance(value, torch.Tensor):
        return host_view(value) if value.is_cuda else None
    return [_to_host(one) for one in value] if isinstance(value, (list, tuple)) else None


def _copied(value):
    if isinstance(value, torch.Tensor):
        return value.clone()
    return [_copied(one) for one in value] if isinstance(value, (list, tuple)) else value


def _copy_all(places, values):
    if isinstance(places, torch.Tensor):
        places.copy_(values)
    elif isinstance(places, list):
        for place, value in zip(places, values):
            _copy_all(place, value)
