// The way of an operator's arguments to the processor and back, in C++: in Python it takes longer than most operators.
//
// Compiled by native.py against the PyTorch at hand. A kernel of this file carries out what is plain: strided tensors of
// the current device, outside of graphs. Everything else it hands to the kernel in Python, whose rules these are.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/empty_strided.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <pybind11/pybind11.h>
#include <torch/library.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using c10::IValue;
using torch::jit::Stack;

/// Where the kernels in Python are (operators.py): a key that no tensor has.
const c10::DispatchKeySet kInPython(c10::DispatchKey::PrivateUse3);

// Of the runtime that the process has loaded; native.py finds them, before the first operator.
int (*synchronizeStream)(void*) = nullptr;
int (*streamIsCapturing)(void*, int*) = nullptr;

/// CPU tensors on the memory of a call's CUDA tensors: one for each, since operators look whether arguments are one.
/// They are valid as long as the arguments are.
class Views {
 public:
  at::Tensor of(const at::Tensor& tensor) {
    for (const auto& [known, view] : views_)
      if (known == tensor.unsafeGetTensorImpl()) return view;
    at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
        storageOf(tensor), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
    c10::TensorImpl* impl = view.unsafeGetTensorImpl();
    impl->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
    if (tensor.is_conj()) impl->_set_conj(true);
    if (tensor.is_neg()) impl->_set_neg(true);
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
    views_.emplace_back(tensor.unsafeGetTensorImpl(), view);
    return view;
  }

 private:
  /// The same for tensors that share one: so operators see which overlap.
  c10::Storage storageOf(const at::Tensor& tensor) {
    const c10::StorageImpl* theirs = tensor.storage().unsafeGetStorageImpl();
    for (const auto& [known, storage] : storages_)
      if (known == theirs) return storage;
    c10::Storage storage(c10::Storage::use_byte_size_t(), tensor.storage().nbytes(),
                         c10::DataPtr(tensor.storage().mutable_data(), c10::Device(c10::DeviceType::CPU)), nullptr,
                         false);
    storages_.emplace_back(theirs, storage);
    return storage;
  }

  std::vector<std::pair<const c10::TensorImpl*, at::Tensor>> views_;
  std::vector<std::pair<const c10::StorageImpl*, c10::Storage>> storages_;
};

/// A new CUDA tensor with the values, shape and strides of a CPU tensor; any other tensor as it is.
at::Tensor onDevice(const at::Tensor& tensor, c10::Device device) {
  if (!tensor.defined() || !tensor.device().is_cpu()) return tensor;
  at::Tensor made = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(device));
  if (tensor.numel() == 0) return made;
  // The memory may be what another thread has just given back, with work on it that the stream has still to do.
  TORCH_CHECK(synchronizeStream(c10::cuda::getCurrentCUDAStream(device.index()).stream()) == 0,
              "tutti.torch: the stream's earlier work failed");
  if (tensor.is_non_overlapping_and_dense() && !tensor.is_conj() && !tensor.is_neg()) {
    std::memcpy(made.mutable_data_ptr(), tensor.const_data_ptr(),
                static_cast<std::size_t>(tensor.numel()) * tensor.element_size());
  } else {
    Views().of(made).copy_(tensor);
  }
  return made;
}

IValue allOnDevice(const IValue& value, c10::Device device) {
  if (value.isTensor()) return onDevice(value.toTensor(), device);
  if (!value.isTensorList()) return value;
  c10::List<at::Tensor> made;
  for (const at::Tensor& one : value.toTensorVector()) made.push_back(onDevice(one, device));
  return made;
}

/// One operator.
class HostKernel final : public c10::OperatorKernel {
 public:
  explicit HostKernel(const c10::FunctionSchema& schema) {
    for (const c10::Argument& one : schema.arguments()) {
      const auto* alias = one.alias_info();
      outputs_.push_back(one.kwarg_only() && alias != nullptr && alias->isWrite());
      hasOutputs_ = hasOutputs_ || outputs_.back();
    }
    for (const c10::Argument& one : schema.returns()) returned_.push_back(argumentOf(schema, one));
  }

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    std::optional<pybind11::gil_scoped_release> free;
    if (PyGILState_Check() != 0) free.emplace();  // what the stream still does may need the interpreter
    Views views;
    Stack host;
    const std::optional<c10::Device> device = toHost(*stack, views, host);
    if (!device.has_value() || !reached(*device)) return op.redispatchBoxed(kInPython, stack);
    const std::vector<IValue> given = torch::jit::pop(*stack, outputs_.size());
    const std::vector<IValue> outputs = outputsOf(host);
    op.callBoxed(&host);
    resize(given, outputs);
    for (std::size_t i = 0; i < returned_.size(); ++i)
      stack->push_back(returned_[i] >= 0 ? given[static_cast<std::size_t>(returned_[i])]
                                         : allOnDevice(host[i], *device));
  }

 private:
  /// The number of the argument that a value returned is; -1: a new one.
  static int argumentOf(const c10::FunctionSchema& schema, const c10::Argument& value) {
    const auto* alias = value.alias_info();
    if (alias == nullptr) return -1;
    for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
      const auto* other = schema.arguments()[i].alias_info();
      if (other != nullptr && other->isWrite() && other->beforeSets() == alias->beforeSets()) return static_cast<int>(i);
    }
    return -1;
  }

  /// The views that are to be written, by argument; others are None.
  std::vector<IValue> outputsOf(const Stack& host) const {
    if (!hasOutputs_) return {};
    std::vector<IValue> views(outputs_.size());
    for (std::size_t i = 0; i < views.size(); ++i)
      if (outputs_[i] && host[i].isTensor()) views[i] = host[i];
    return views;
  }

  /// An output of another size than its tensor has been given the right one, on the tensor's memory.
  static void resize(const std::vector<IValue>& given, const std::vector<IValue>& outputs) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].isTensor() || !outputs[i].toTensor().defined()) continue;
      const at::Tensor& view = outputs[i].toTensor();
      const at::Tensor& tensor = given[i].toTensor();
      if (view.sizes() != tensor.sizes())
        tensor.unsafeGetTensorImpl()->set_sizes_and_strides(view.sizes(), view.strides(), view.storage_offset());
    }
  }

  /// The arguments as the processor is to see them. Returns the device of the CUDA tensors among them; nothing where
  /// that is for Python to do.
  std::optional<c10::Device> toHost(const Stack& stack, Views& views, Stack& host) const {
    std::optional<c10::Device> device;
    const std::size_t first = stack.size() - outputs_.size();
    const auto viewed = [&](const at::Tensor& tensor, bool output) -> std::optional<at::Tensor> {
      if (!tensor.defined() || !tensor.is_cuda()) return tensor;
      if (tensor.layout() != c10::kStrided || tensor.is_quantized() || (output && tensor.numel() == 0) ||
          device.value_or(tensor.device()) != tensor.device())
        return std::nullopt;
      device = tensor.device();
      return views.of(tensor);
    };
    host.reserve(outputs_.size());
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const IValue& value = stack[first + i];
      if (value.isTensor()) {
        auto view = viewed(value.toTensor(), outputs_[i]);
        if (!view.has_value()) return std::nullopt;
        host.emplace_back(std::move(*view));
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const at::Tensor& one : value.toTensorVector()) {
          auto view = viewed(one, outputs_[i]);
          if (!view.has_value()) return std::nullopt;
          list.push_back(std::move(*view));
        }
        host.emplace_back(std::move(list));
      } else if (value.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> list;
        for (const std::optional<at::Tensor>& one : value.toOptionalTensorVector()) {
          auto view = one.has_value() ? viewed(*one, outputs_[i]) : std::optional(at::Tensor());
          if (!view.has_value()) return std::nullopt;
          list.push_back(one.has_value() ? std::optional(std::move(*view)) : std::nullopt);
        }
        host.emplace_back(std::move(list));
      } else if (value.isDevice()) {
        return std::nullopt;
      } else {
        host.push_back(value);
      }
    }
    return device;
  }

  /// Whether the device is the current one and all earlier work of its current stream is done. False: not so, or the
  /// stream is captured or has failed, for which Python has the words.
  static bool reached(c10::Device device) {
    if (device.index() != c10::cuda::current_device()) return false;
    void* const stream = c10::cuda::getCurrentCUDAStream(device.index()).stream();
    int capturing = 0;
    return streamIsCapturing(stream, &capturing) == 0 && capturing == 0 && synchronizeStream(stream) == 0;
  }

  std::vector<bool> outputs_;  ///< of the arguments, which are to be written
  bool hasOutputs_ = false;    ///< any
  std::vector<int> returned_;
};

void configure(std::uintptr_t synchronize, std::uintptr_t isCapturing) {
  synchronizeStream = reinterpret_cast<int (*)(void*)>(synchronize);
  streamIsCapturing = reinterpret_cast<int (*)(void*, int*)>(isCapturing);
}

/// PyTorch says once that a kernel is put in the place of another.
class Quiet final : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

/// Puts a kernel in the place of the one that CUDA tensors have for the operator `name.overload`. It stays.
void implement(const std::string& name, const std::string& overload) {
  static Quiet quiet;
  const c10::WarningUtils::WarningHandlerGuard guard(&quiet);
  static auto* const library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(("aten::" + name).c_str(), overload.c_str());
  library->impl((overload.empty() ? name : name + "." + overload).c_str(),
                torch::CppFunction::makeFromBoxedFunctor(std::make_unique<HostKernel>(op.schema())));
}

}  // namespace

PYBIND11_MODULE(TUTTI_MODULE, module) {
  module.def("configure", &configure);
  module.def("implement", &implement);
}
