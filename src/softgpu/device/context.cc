#include "softgpu/device/context.h"

#include <pthread.h>

#include <unordered_map>

#include "softgpu/device/machine.h"

namespace tutti::softgpu {
namespace {

struct ThreadState {
  std::uint64_t generation = 0;
  std::vector<Context*> stack;
  std::unordered_map<Context*, std::shared_ptr<Stream>> streams;
};

constinit thread_local ThreadState* own = nullptr;

/// Frees the state of a thread that ends, after its thread_local objects, which may still use it. The main thread's
/// stays: static objects are destroyed after everything thread_local, and may still use it, too.
pthread_key_t lastKey() {
  static const pthread_key_t key = [] {
    pthread_key_t made = 0;
    ::pthread_key_create(&made, [](void* state) {
      own = nullptr;
      delete static_cast<ThreadState*>(state);
    });
    return made;
  }();
  return key;
}

ThreadState& threadState() {
  if (own == nullptr) {
    own = new ThreadState();
    ::pthread_setspecific(lastKey(), own);
  }
  if (own->generation != machineGeneration()) {
    *own = ThreadState();
    own->generation = machineGeneration();
  }
  return *own;
}

}  // namespace

Context::Context(Device& device, bool primary) : device_(device), primary_(primary) {
  static std::atomic<std::uint64_t> ids{0};
  id_ = ids.fetch_add(1) + 1;
}

void Context::makeLegacyStream() {
  legacy_ = std::make_shared<Stream>(*this, 0, 0);
}

void Context::setError(CUresult error) {
  CUresult none = CUDA_SUCCESS;
  error_.compare_exchange_strong(none, error);
}

std::shared_ptr<Stream> Context::perThread() {
  std::shared_ptr<Stream>& stream = threadState().streams[this];
  if (stream == nullptr) {
    stream = std::make_shared<Stream>(*this, 0, 0);
    std::lock_guard<std::mutex> guard(machine().lock);
    adopt(stream);
  }
  return stream;
}

std::vector<std::shared_ptr<Stream>> Context::liveStreams() {
  std::vector<std::shared_ptr<Stream>> live;
  std::erase_if(streams_, [&live](const std::weak_ptr<Stream>& weak) {
    auto stream = weak.lock();
    if (stream == nullptr) return true;
    live.push_back(std::move(stream));
    return false;
  });
  return live;
}

CUresult Context::synchronize() {
  std::vector<std::pair<std::shared_ptr<Stream>, std::uint64_t>> pending;
  {
    std::lock_guard<std::mutex> guard(machine().lock);
    pending.emplace_back(legacy_, legacy_->submitted.load());
    for (const auto& stream : liveStreams()) pending.emplace_back(stream, stream->submitted.load());
  }
  for (const auto& [stream, sequence] : pending) stream->waitFor(sequence);
  return error();
}

Context* currentContext() {
  const auto& stack = threadState().stack;
  return stack.empty() ? nullptr : stack.back();
}

void setCurrentContext(Context* context) {
  auto& stack = threadState().stack;
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(context);
}

void pushContext(Context* context) {
  threadState().stack.push_back(context);
}

Context* popContext() {
  auto& stack = threadState().stack;
  if (stack.empty()) return nullptr;
  Context* top = stack.back();
  stack.pop_back();
  return top;
}

}  // namespace tutti::softgpu
