#include "comm/launch/implicit_order.h"

#include <utility>

#include "gpu/context.h"

namespace tutti::comm {

namespace {

/// CUDA 12.3, the first whose launches record an event when they have begun.
constexpr int kLaunchCompletion = 12030;

}  // namespace

Result<std::unique_ptr<ImplicitOrder>> ImplicitOrder::create(const gpu::Device& device) {
  ASSIGN(std::shared_ptr<LaunchOrder> order, LaunchOrder::create(device, {.mix = true, .within = true}));
  const gpu::Driver& driver = device.driver();
  const bool tellsBegin = driver.cuLaunchKernelEx != nullptr && driver.version >= kLaunchCompletion;
  return std::unique_ptr<ImplicitOrder>(new ImplicitOrder(std::move(order), tellsBegin));
}

Result<ImplicitOrder::Turn> ImplicitOrder::begin(const gpu::CaptureState& capture, CUstream main) {
  Turn turn(*this, capture, main);
  TRY(order_->before(capture, {&main, 1}));
  return turn;
}

Status ImplicitOrder::Turn::end(bool recorded) {
  if (recorded && begun() != nullptr) return order_->order_->afterBegin(main_);
  return order_->order_->after(capture_, {&main_, 1});
}

}  // namespace tutti::comm
