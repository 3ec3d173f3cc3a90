"""CUDA tensors seen as tensors of the processor: the same memory, no copies."""
import torch

HOST = torch.device("cpu")


def host_view(tensor):
    """A CPU tensor on the memory of a CUDA tensor. Valid as long as the CUDA tensor's storage is."""
    storage = tensor.untyped_storage()
    size = storage.nbytes()
    if size == 0:
        view = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=HOST)
    else:
        view = torch.empty(0, dtype=tensor.dtype, device=HOST)
        view.set_(torch._C._construct_storage_from_data_pointer(storage.data_ptr(), HOST, size),
                  tensor.storage_offset(), tensor.size(), tensor.stride())
    if tensor.is_conj():
        view = torch._conj(view)
    if tensor.is_neg():
        view = torch._neg_view(view)
    return view


def on_device(tensor, device):
    """A new CUDA tensor with the values, shape and strides of a CPU tensor."""
    made = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=device)
    if tensor.numel() > 0:
        host_view(made).copy_(tensor)
    return made


def replace(tensor, values):
    """Gives a CUDA tensor the shape and the values of a CPU tensor."""
    tensor.resize_(values.size())
    if values.numel() > 0:
        host_view(tensor).copy_(values)
