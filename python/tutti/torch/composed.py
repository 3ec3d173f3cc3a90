"""Operators that PyTorch has for GPUs only, made of others: each works on CUDA tensors and may be captured."""
import torch

def _no(*args, **kwargs):
    """Of questions whether one of the libraries of kernels takes a call."""
    return False


def _axes(tensor):
    """All but the channels, which are the second axis."""
    return [axis for axis in range(tensor.dim()) if axis != 1]


def _spread(values, like):
    """One value per channel, in a shape that goes with `like`."""
    return values.reshape([1, -1] + [1] * (like.dim() - 2))


def _wide(tensor):
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _batch_norm_stats(input, eps):
    values = _wide(input)
    variance, mean = torch.var_mean(values, _axes(values), correction=0)
    return mean, torch.rsqrt(variance + eps)


def _batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps, counts):
    """Of the statistics of several ranks (one per row) those of all their values."""
    weights = counts.to(mean.dtype).reshape(-1, 1)
    total = weights.sum()
    common = (mean * weights).sum(0) / total
    squares = ((invstd.pow(-2) - eps + (mean - common).pow(2)) * weights).sum(0)
    variance = squares / total
    if running_mean is not None:
        running_mean.lerp_(common.to(running_mean.dtype), momentum)
    if running_var is not None:
        running_var.lerp_((squares / (total - 1)).to(running_var.dtype), momentum)
    return common, torch.rsqrt(variance + eps)


def _batch_norm_elemt(input, weight, bias, mean, invstd, eps):
    values = _wide(input)
    result = (values - _spread(mean, values)) * _spread(invstd, values)
    if weight is not None:
        result = result * _spread(weight, values)
    if bias is not None:
        result = result + _spread(bias, values)
    return result.to(input.dtype)


def _batch_norm_backward_reduce(grad_out, input, mean, invstd, weight, input_g, weight_g, bias_g):
    grad, values = _wide(grad_out), _wide(input)
    sum_dy = grad.sum(_axes(grad))
    sum_dy_xmu = (grad * (values - _spread(mean, values))).sum(_axes(grad))
    grad_weight = (sum_dy_xmu * invstd).to(weight.dtype) if weight_g and weight is not None else None
    grad_bias = sum_dy.to(weight.dtype if weight is not None else sum_dy.dtype) if bias_g else None
    return sum_dy, sum_dy_xmu, grad_weight, grad_bias


def _batch_norm_backward_elemt(grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count):
    grad, values = _wide(grad_out), _wide(input)
    total = count.sum().to(mean.dtype)
    shared = _spread(sum_dy / total, values)
    slope = _spread(sum_dy_xmu / total * invstd * invstd, values)
    scale = invstd if weight is None else invstd * weight
    result = (grad - shared - (values - _spread(mean, values)) * slope) * _spread(scale, values)
    return result.to(input.dtype)


def _lstm_gates(input_gates, hidden_gates, input_bias, hidden_bias):
    gates = input_gates + hidden_gates
    if input_bias is not None:
        gates = gates + input_bias + hidden_bias
    entry, forget, cell, leave = gates.chunk(4, 1)
    return torch.sigmoid(entry), torch.sigmoid(forget), torch.tanh(cell), torch.sigmoid(leave)


def _lstm_cell(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
    entry, forget, cell, leave = _lstm_gates(input_gates, hidden_gates, input_bias, hidden_bias)
    cy = forget * cx + entry * cell
    return leave * torch.tanh(cy), cy, torch.cat((entry, forget, cell, leave), 1)


def _lstm_cell_backward(grad_hy, grad_cy, cx, cy, workspace, has_bias):
    entry, forget, cell, leave = workspace.chunk(4, 1)
    squashed = torch.tanh(cy)
    grad_hy = torch.zeros_like(cy) if grad_hy is None else grad_hy
    inner = grad_hy * leave * (1 - squashed * squashed)
    if grad_cy is not None:
        inner = inner + grad_cy
    gates = torch.cat((inner * cell * entry * (1 - entry), inner * cx * forget * (1 - forget),
                       inner * entry * (1 - cell * cell), grad_hy * squashed * leave * (1 - leave)), 1)
    return gates, inner * forget, gates.sum(0) if has_bias else None


def _gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    if input_bias is not None:
        input_gates, hidden_gates = input_gates + input_bias, hidden_gates + hidden_bias
    input_reset, input_update, input_new = input_gates.chunk(3, 1)
    hidden_reset, hidden_update, hidden_new = hidden_gates.chunk(3, 1)
    reset = torch.sigmoid(input_reset + hidden_reset)
    update = torch.sigmoid(input_update + hidden_update)
    new = torch.tanh(input_new + reset * hidden_new)
    return new + update * (hx - new), torch.cat((reset, update, new, hx, hidden_new), 1)


def _gru_cell_backward(grad_hy, workspace, has_bias):
    reset, update, new, hx, hidden_new = workspace.chunk(5, 1)
    grad_new = grad_hy * (1 - update) * (1 - new * new)
    grad_update = grad_hy * (hx - new) * update * (1 - update)
    grad_reset = grad_new * hidden_new * reset * (1 - reset)
    of_input = torch.cat((grad_reset, grad_update, grad_new), 1)
    of_hidden = torch.cat((grad_reset, grad_update, grad_new * reset), 1)
    return (of_input, of_hidden, grad_hy * update, of_input.sum(0) if has_bias else None,
            of_hidden.sum(0) if has_bias else None)


def _rms_norm_backward(grad_out, input, normalized_shape, rstd, weight, output_mask):
    axes = list(range(input.dim() - len(normalized_shape), input.dim()))
    grad, values = _wide(grad_out), _wide(input)
    scaled = values * rstd
    inner = grad if weight is None else grad * weight
    grad_input = grad_weight = None
    if output_mask[0]:
        grad_input = (rstd * (inner - scaled * (inner * scaled).mean(axes, keepdim=True))).to(input.dtype)
    if output_mask[1] and weight is not None:
        of_each = grad * scaled
        grad_weight = (of_each.sum(list(range(axes[0]))) if axes[0] > 0 else of_each).to(weight.dtype)
    return grad_input, grad_weight


def _product(multiply, *tensors, out_dtype):
    """A product whose result has a wider type than what is multiplied."""
    return multiply(*(one.to(out_dtype) for one in tensors))


def _mm(self, mat2, out_dtype):
    return _product(torch.mm, self, mat2, out_dtype=out_dtype)


def _bmm(self, mat2, out_dtype):
    return _product(torch.bmm, self, mat2, out_dtype=out_dtype)


def _addmm(self, mat1, mat2, out_dtype, *, beta=1, alpha=1):
    return torch.add(self.to(out_dtype) * beta, _mm(mat1, mat2, out_dtype), alpha=alpha)


def _baddbmm(self, batch1, batch2, out_dtype, *, beta=1, alpha=1):
    return torch.add(self.to(out_dtype) * beta, _bmm(batch1, batch2, out_dtype), alpha=alpha)


def _softmax(kernel, self, dim, half_to_float):
    return kernel(self.float() if half_to_float else self, dim, False)


def _softmax_backward(kernel, grad_output, output, dim, input_dtype):
    return kernel(grad_output, output, dim, grad_output.dtype).to(input_dtype)


# What the processor's form of an operator does not take: by the operator's name, a function of that form and the call.
AROUND = {
    "aten::_softmax": _softmax,
    "aten::_log_softmax": _softmax,
    "aten::_softmax_backward_data": _softmax_backward,
    "aten::_log_softmax_backward_data": _softmax_backward,
}

KERNELS = {
    "aten::_fused_rms_norm_backward": _rms_norm_backward,
    "aten::_use_cudnn_ctc_loss": _no,
    "aten::_use_cudnn_ctc_loss.Tensor": _no,
    "aten::_use_miopen_ctc_loss": _no,
    "aten::_use_miopen_ctc_loss.Tensor": _no,
    "aten::mm.dtype": _mm,
    "aten::bmm.dtype": _bmm,
    "aten::addmm.dtype": _addmm,
    "aten::baddbmm.dtype": _baddbmm,
    "aten::batch_norm_stats": _batch_norm_stats,
    "aten::batch_norm_gather_stats_with_counts": _batch_norm_gather_stats_with_counts,
    "aten::batch_norm_elemt": _batch_norm_elemt,
    "aten::batch_norm_backward_reduce": _batch_norm_backward_reduce,
    "aten::batch_norm_backward_elemt": _batch_norm_backward_elemt,
    "aten::_thnn_fused_lstm_cell": _lstm_cell,
    "aten::_thnn_fused_lstm_cell_backward_impl": _lstm_cell_backward,
    "aten::_thnn_fused_gru_cell": _gru_cell,
    "aten::_thnn_fused_gru_cell_backward": _gru_cell_backward,
}
